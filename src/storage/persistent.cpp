// The driver of persistent itself: one root, and the targets of its file system, if it has any, chosen by the name that a file is made with, or by a call (targets.hpp).
// What these still take is said by who makes the call; elsewhere statvfs tells of all of them together.
#include "storage/driver.hpp"

namespace cairn {

namespace {

class PersistentDriver final : public StorageDriver {
  public:
    PersistentDriver(World world, std::string persistent, std::shared_ptr<const PlacementTargets> targets)
        : world_(world), persistent_(std::move(persistent)), targets_(std::move(targets)) {}

    std::vector<std::string> targets() const override { return targets_->names; }
    bool needs_target() const override { return false; }
    bool spans_targets() const override { return targets_->spans; }

    Task<std::vector<TargetFill>> fill(std::vector<std::string> names, Nanos deadline) override {
        std::vector<TargetFill> fills;
        if (!targets_->by.empty()) {
            std::string directory = persistent_, by = targets_->by;
            const Result<std::vector<TargetRoom>> rooms = co_await world_.storage.target_rooms(std::move(directory), std::move(by), deadline);
            for (std::string& name : names) fills.push_back(fill_of(std::move(name), rooms));
            co_return fills;
        }
        for (std::string& name : names) {
            Status unknown(Code::unsupported, persistent_ + ": its file system does not say what is left on the storage target " + name);
            fills.push_back(TargetFill{std::move(name), std::move(unknown)});
        }
        co_return fills;
    }

    Task<Status> create(NewFile asked, PlacedFile& placed, Nanos io_wait) override {
        const std::string made_as = targets_->create_path(asked.path, asked.target);
        Placing placing = targets_->placing(asked.target, asked.stripe);
        const bool is_told = !placing.targets.empty();
        Status made = co_await make_file(world_, asked, made_as, std::move(placing), placed, world_.clock.in(io_wait));
        if (!made.ok()) co_return std::move(made).within("creating a part");
        if (is_told && placed.file->is_placed()) placed.target = asked.target;
        if (made_as == asked.path) co_return Status();
        Status found = co_await check_name(asked, made_as, io_wait);
        if (found.ok()) placed.target = asked.target;
        co_return found;
    }

  private:
    // One of which it no longer speaks takes nothing. That nobody answers is no target's fault.
    static TargetFill fill_of(std::string name, const Result<std::vector<TargetRoom>>& rooms) {
        if (!rooms.ok()) {
            Status silent = rooms.code() == Code::deadline ? unavailable(rooms.status().text()) : rooms.status();
            return {std::move(name), std::move(silent)};
        }
        std::uint64_t free_bytes = 0;
        for (const TargetRoom& room : *rooms)
            if (room.name == name) free_bytes = room.free_bytes;
        return {std::move(name), free_bytes};
    }

    // Of a target that was taken away since this daemon asked for them the file system may know nothing any more, and take the name as it is said: then the
    // data would lie, durable and whole, under a name that no manifest says. The target is left out for a while, and the next attempt goes elsewhere.
    Task<Status> check_name(const NewFile& asked, const std::string& made_as, Nanos io_wait) {
        const OpenOptions reading;
        Result<FilePtr> file = co_await world_.storage.open(asked.path, reading, world_.clock.in(io_wait));
        if (file.ok()) co_return Status();
        if (file.code() != Code::not_found) co_return std::move(file).status().within("looking for a part that was just made");
        const Status ignored = co_await world_.storage.remove(made_as, world_.clock.in(io_wait));
        (void)ignored;  // nothing that is ours by name; a user sees what it is
        co_return Status(Code::io_error, "is not there after it was made as " + made_as + ": the file system does not know the storage target " +
                                             asked.target + " any more. It is left out for a while; which there are is asked again when a job opens");
    }

    const World world_;
    const std::string persistent_;
    const std::shared_ptr<const PlacementTargets> targets_;
};

}  // namespace

std::unique_ptr<StorageDriver> persistent_driver(World world, std::string persistent, std::shared_ptr<const PlacementTargets> targets) {
    return std::make_unique<PersistentDriver>(world, std::move(persistent), std::move(targets));
}

}  // namespace cairn
