// Place: the settings and the world a storage command works in: persistent, this host's scratch, the real storage. No
// daemon is needed and none is asked: what is on disk is the truth.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/config.hpp"
#include "cli/command.hpp"
#include "copies/restore.hpp"
#include "world/real/world.hpp"

namespace cairn::cli {

// The settings with --persistent, --scratch and --set on top.
Result<Config> load_settings(const Arguments& arguments);

// Directories of the daemons of this user on this host that work for this persistent directory (one a node, virtual
// nodes included).
std::vector<ScratchLayout> scratch_roots(const Settings& settings);
std::vector<std::string> scratch_nodes(const Settings& settings);  // whose these are, by name

class Place {
  public:
    // not_found when the persistent directory does not exist; the text says which setting names it.
    static Result<Place> open(const Arguments& arguments);

    const Settings& settings() const noexcept { return settings_; }
    const Layout& layout() const noexcept { return layout_; }
    // Besides those of the settings.
    void know_roots(const std::set<std::string>& roots);
    const RestoreSettings& restore() const noexcept { return restore_; }
    World& world() noexcept { return *world_; }
    Nanos io_wait() const noexcept { return restore_.io_wait; }
    Nanos deadline() const { return world_->clock.in(io_wait()); }

    template <class T>
    T run(Task<T> task) {
        return real_->loop().run(std::move(task));
    }

  private:
    Place() = default;
    Settings settings_;
    Layout layout_;
    RestoreSettings restore_;
    std::unique_ptr<RealWorld> real_;
    std::unique_ptr<World> world_;
};

}  // namespace cairn::cli
