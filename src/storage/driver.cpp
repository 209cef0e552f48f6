#include "storage/driver.hpp"

namespace cairn {

std::unique_ptr<StorageDriver> storage_driver(World world, std::string persistent, std::vector<std::string> roots, std::shared_ptr<const PlacementTargets> targets) {
    if (roots.empty()) return persistent_driver(world, std::move(persistent), std::move(targets));
    return directories_driver(world, std::move(persistent), std::move(roots));
}

Task<Status> make_file(World world, NewFile asked, std::string made_as, Placing placing, PlacedFile& placed, Nanos deadline) {
    OpenOptions options;
    options.mode = OpenMode::create;
    options.direct = asked.direct;
    options.placing = std::move(placing);
    Result<FilePtr> file = co_await world.storage.open(std::move(made_as), options, deadline);
    if (!file.ok()) co_return std::move(file).status();
    placed.file = std::move(file).value();
    placed.root = std::move(asked.root);
    placed.path = std::move(asked.path);
    co_return Status();
}

}  // namespace cairn
