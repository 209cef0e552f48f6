#include "daemon/unseen_images.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "daemon/blocking.hpp"

namespace cairn {

Task<void> UnseenImages::give(LocalImage image) {
    const VersionKey key = image.header.key;
    const Rank rank = image.header.rank;
    const std::string path = image.path;
    const bool was_known = node_.knows(key.incarnation);
    Status status = co_await jobs_.join_again(key.incarnation);
    if (status.ok() && !was_known) co_await give_orphans(key.incarnation);
    if (!slots_.holds(key, rank, path)) co_return drop(path);  // dropped meanwhile
    if (status.ok()) status = node_.add_image(image);
    if (status.ok())
        log_info("image-found", {{"name", key.name}, {"version", key.version}, {"rank", rank}, {"path", path}});
    else
        log_warning("image-can-not-be-flushed",
                    {{"name", key.name}, {"version", key.version}, {"rank", rank}, {"path", path}, {"why", status}});
    if (status.code() == Code::not_found) orphans_[key.incarnation].push_back(path);
    else if (!status.ok() && may_pass(status)) waiting_.push_back(std::move(image));
    else drop(path);
}

Task<void> UnseenImages::give_waiting() {
    for (LocalImage& image : std::exchange(waiting_, {})) {
        LocalImage one = std::move(image);
        co_await give(std::move(one));
    }
}

Task<void> UnseenImages::give_orphans(Id128 incarnation) {
    const auto found = orphans_.find(incarnation);
    if (found == orphans_.end()) co_return;
    const std::vector<std::string> paths = std::move(found->second);
    orphans_.erase(found);
    for (const std::string& path : paths) {
        Result<std::optional<LocalImage>> image = co_await read_image(world_, path, world_.clock.in(io_wait_), slots_.mapping(path));
        if (image.ok() && image->has_value()) {
            LocalImage one = std::move(**image);
            co_await give(std::move(one));
        } else if (!image.ok() && may_pass(image.status())) {
            orphans_[incarnation].push_back(path);
        } else {
            drop(path);
        }
    }
}

Task<void> UnseenImages::give_orphans_late(std::function<bool()> over) {
    while (!over()) {
        co_await world_.clock.sleep(try_again);
        std::vector<Id128> known;
        for (const auto& [incarnation, paths] : orphans_)
            if (node_.knows(incarnation)) known.push_back(incarnation);
        for (const Id128 incarnation : known) co_await give_orphans(incarnation);
    }
}

bool UnseenImages::has_of(Id128 incarnation) const {
    return std::any_of(unseen_.begin(), unseen_.end(), [&](const auto& image) { return image.second == incarnation; });
}

}  // namespace cairn
