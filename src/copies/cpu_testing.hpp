// For tests: a world whose decodings are counted, or fail; or that has other threads.
#pragma once

#include "world/world.hpp"

namespace cairn::testing {

class WatchedCpu final : public Cpu {
  public:
    explicit WatchedCpu(Cpu& inner) : inner_(inner) {}
    Status fails;         // what decode() says instead
    int decodes = 0;
    int comparisons = 0;
    bool differs = false;  // whatever is compared
    unsigned threads = 0;  // that encode at once; 0: as many as in that world

    Task<std::vector<std::uint64_t>> checksums(Slice data, Units units) override { return inner_.checksums(std::move(data), std::move(units)); }
    bool may_shrink(Codec codec, const std::vector<std::uint64_t>& checksums, std::uint64_t bytes, std::uint64_t block_bytes) const override {
        return inner_.may_shrink(codec, checksums, bytes, block_bytes);
    }
    Task<Result<Encoded>> encode(Coding coding, Slice raw, BaseBytes base, FindArrays arrays, Slice into, Nanos deadline) override {
        return inner_.encode(std::move(coding), std::move(raw), std::move(base), std::move(arrays), std::move(into), deadline);
    }
    Task<Result<std::vector<NumberArray>>> find(FindArrays arrays, Nanos deadline) override { return inner_.find(std::move(arrays), deadline); }
    unsigned encoders() const override { return threads != 0 ? threads : inner_.encoders(); }
    Task<Status> decode(Codec codec, Slice stored, Slice base, Slice into, Nanos deadline) override {
        ++decodes;
        if (!fails.ok()) co_return fails;
        Status status = co_await inner_.decode(codec, std::move(stored), std::move(base), std::move(into), deadline);
        co_return status;
    }

    Task<Result<bool>> equal(Pairs pairs, Nanos deadline) override {
        ++comparisons;
        Result<bool> same = co_await inner_.equal(std::move(pairs), deadline);
        if (same.ok() && differs) same = false;
        co_return same;
    }

  private:
    Cpu& inner_;
};

inline World with_cpu(const World& world, Cpu& cpu) { return {world.clock, world.storage, world.network, world.random, cpu}; }

}  // namespace cairn::testing
