#include "daemon/left_slots.hpp"

#include <utility>

#include "base/log.hpp"
#include "daemon/blocking.hpp"
#include "daemon/scratch_look.hpp"

namespace cairn {

Task<void> LeftSlots::look_into(Slots::Left left) {
    ++looking_;
    co_await take(std::move(left));
    --looking_;
}

Task<void> LeftSlots::take(Slots::Left left) {
    const std::string path = left.path;
    Result<std::optional<LocalImage>> image = co_await read_image(world_, path, world_.clock.in(io_wait_), slots_.mapping(path));
    for (int looks = 1; !image.ok() && may_pass(image.status()) && looks < looks_max; ++looks) {
        co_await world_.clock.sleep(try_again);
        image = co_await read_image(world_, path, world_.clock.in(io_wait_), slots_.mapping(path));
    }
    if (!image.ok() || !image->has_value() || !node_.knows((*image)->header.key.incarnation))
        co_return slots_.discard_unsealed(path, left.lease);
    LocalImage found = std::move(**image);
    if (!slots_.sealed(found, left.lease)) co_return;  // it was said after all
    const VersionKey key = found.header.key;
    const Rank rank = found.header.rank;
    const Status added = node_.add_image(std::move(found));
    if (!added.ok() && added.code() != Code::unavailable) slots_.discard(path);  // unavailable: for the next daemon
    log_info("image-of-lost-client",
             {{"name", key.name}, {"version", key.version}, {"rank", rank}, {"outcome", added}});
}

}  // namespace cairn
