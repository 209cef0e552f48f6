// A node's looks for dead images (catalog/dead.hpp says which are): when it starts, when a job of its node went on from somewhere or committed for the first
// time, and now and then. Nothing need be told to anybody: every daemon reads the same records. What is said of it is a reason to look sooner; lost, late or
// repeated it does no harm.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/dead.hpp"
#include "engine/router/node.hpp"

namespace cairn {

class DeadImages {
  public:
    // The node's scratch: a daemon's slots.
    class Scratch {
      public:
        struct Held {
            Undecided version;
            bool in_use = false;      // somebody has taken hold of an image
            std::uint64_t taken = 0;  // how often that was, ever
        };
        virtual ~Scratch() = default;
        virtual std::vector<Held> undecided() = 0;
        // Its flush on this node has ended: all its images go that can.
        virtual void let_go(const VersionKey& key) = 0;
    };

    DeadImages(World world, Layout layout, Node& node, Scratch& scratch, Nanos io_wait);

    // Both for ever; of a gate of the owner's.
    Task<void> run();
    Task<void> watch_commits();
    void look_soon();
    // One look. False when some are left that the next one may find dead.
    Task<bool> look(Nanos deadline);

  private:
    std::map<VersionKey, Scratch::Held> undecided();
    Task<bool> look_at(std::string name, Nanos deadline);
    Task<Result<bool>> opened_since(std::string name, std::uint64_t epoch, Nanos deadline);
    Task<Status> make_durable(const LineageRecords& records, const std::vector<CatalogEntry>& entries, Nanos deadline);
    void end(const Undecided& version, const std::string& why);
    Task<bool> clear();

    World world_;
    Layout layout_;
    Node& node_;
    Scratch& scratch_;
    Nanos io_wait_;
    bool wanted_ = false;
    Event news_;
    std::map<std::string, std::uint64_t> committed_;  // by series: the newest epoch that committed here
    std::map<VersionKey, Undecided> to_clear_;        // dead, and something of them may be under persistent
};

}  // namespace cairn
