// What persistent storage would hold if every node lost power at this moment, read by the engine's own code, in no time and without a fault.
#pragma once

#include "proof/cluster.hpp"

namespace cairn::testing {

class Kept {
  public:
    // `process`: whose clock it has. `name`: one that counts although it is not durable yet.
    Kept(sim::Process& process, std::string name);
    ~Kept();

    World& world() { return world_; }
    // Everything a reader does comes back at once.
    template <class T>
    T run(Task<T> task) {
        std::optional<T> result;
        const auto hold = [](Task<T> inner, std::optional<T>* out) -> Task<void> {
            T value = co_await inner;
            out->emplace(std::move(value));
        };
        Task<void> outer = hold(std::move(task), &result);
        outer.start();
        CAIRN_CHECK(result);
        return std::move(*result);
    }
    // Bytes of a file, as a description where they are one.
    Result<Slice> bytes_of(const std::string& path, std::uint64_t offset, std::uint64_t length) const;

  private:
    class Files;
    class Sums;
    std::unique_ptr<Files> files_;
    std::unique_ptr<Sums> sums_;
    World world_;
};

}  // namespace cairn::testing
