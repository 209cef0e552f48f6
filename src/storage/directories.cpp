// The driver of several roots, each of them a target: directories of whatever file systems. A root's free bytes are those of its file system.
#include <algorithm>
#include <map>
#include <optional>

#include "storage/driver.hpp"

namespace cairn {

namespace {

Task<void> ask_room(World world, std::string root, Nanos deadline, std::optional<Result<std::uint64_t>>* room) {
    Result<std::uint64_t> said = co_await world.storage.free_bytes(std::move(root), deadline);
    *room = std::move(said);
}

class DirectoriesDriver final : public StorageDriver {
  public:
    DirectoriesDriver(World world, std::string persistent, std::vector<std::string> roots)
        : world_(world), persistent_(std::move(persistent)), roots_(std::move(roots)) {}

    std::vector<std::string> targets() const override { return roots_; }
    // Nobody asked for parts below persistent, which may be small.
    bool needs_target() const override { return true; }

    Task<std::vector<TargetFill>> fill(std::vector<std::string> names, Nanos deadline) override {
        std::map<std::string, std::optional<Result<std::uint64_t>>> rooms;
        for (const std::string& name : names) rooms[name];
        Gate asked(world_.clock);
        for (auto& [root, room] : rooms) asked.spawn(ask_room(world_, root, deadline, &room));
        co_await asked.close();
        std::vector<TargetFill> fills;
        for (auto& [root, room] : rooms) fills.push_back(TargetFill{root, std::move(*room)});
        co_return fills;
    }

    // Only opens in a directory that is there: on a node where the root is not mounted it fails, instead of writing below the mount point.
    Task<Status> create(NewFile asked, PlacedFile& placed, Nanos io_wait) override {
        const std::string made_as = asked.path;
        const Placing nowhere;
        Status made = co_await make_file(world_, asked, made_as, nowhere, placed, world_.clock.in(io_wait));
        if (made.code() == Code::not_found && asked.root != persistent_)
            made = unavailable(made.text() + ": " + asked.directory_made_by + ", has made its directory; is the same file system mounted at " + asked.root +
                               " on all nodes (storage.directories)?");
        if (!made.ok()) co_return std::move(made).within("creating a part");
        if (std::find(roots_.begin(), roots_.end(), asked.root) != roots_.end()) placed.target = asked.root;
        co_return Status();
    }

  private:
    const World world_;
    const std::string persistent_;
    const std::vector<std::string> roots_;
};

}  // namespace

std::unique_ptr<StorageDriver> directories_driver(World world, std::string persistent, std::vector<std::string> roots) {
    return std::make_unique<DirectoriesDriver>(world, std::move(persistent), std::move(roots));
}

}  // namespace cairn
