#include "tune/warm_storage.hpp"

#include <utility>

namespace cairn::tune {

Result<BufferPtr> BufferStock::take(Storage& storage, std::uint64_t bytes) {
    auto& fitting = kept_[bytes];
    BufferPtr base;
    if (!fitting.empty()) {
        base = std::move(fitting.back());
        fitting.pop_back();
    } else {
        if (bytes_ + bytes > bytes_max_) {  // of other sizes: for another run
            for (const auto& [size, buffers] : kept_) bytes_ -= size * buffers.size();
            kept_.clear();
        }
        TRY_ASSIGN(base, storage.allocate(bytes));
        bytes_ += bytes;
    }
    Buffer* raw = base.get();
    return BufferPtr(raw, [stock = weak_from_this(), base = std::move(base)](Buffer*) mutable {
        if (const auto alive = stock.lock()) alive->give_back(std::move(base));
    });
}

void BufferStock::give_back(BufferPtr buffer) {
    const std::uint64_t bytes = buffer->size();
    if (bytes_ > bytes_max_) bytes_ -= bytes;
    else kept_[bytes].push_back(std::move(buffer));
}

}  // namespace cairn::tune
