// Dead images: what lies in a node's scratch, was never committed, and can not be needed any more. They go at once, or in the end they fill scratch.
//
// The rule (why_dead). The head of the series' current lineage decides (lineage.hpp), by the record of what it went on from. What an older open took
// and is in that lineage stays: it is committed by whoever holds it. Of what is above it, or beside it, one thing counts: whether the version was whole
// when the head's open asked the nodes that it runs on (FromRecord::whole); nobody else was asked, and nobody else counts. Not whole then, it is
// dead; whole, once the head has committed.
//
// What is in doubt stays: a lineage that is not certain (Lineage::is_certain), can not be listed, or does not reach the series' beginning; a head whose own
// record of what it went on from is damaged, though others tell the parent, or that did not look (an older release, or a repair wrote the record); a damaged
// manifest that might be a newer head's; a version directory that can not be listed; images that somebody has taken hold of to restore them.
//
// Whoever restores takes hold of images first, then looks at the lineage, then records where it goes on from, then lets go. So what was not held
// when a look began, and was not taken hold of since, is not what somebody chose whom the look did not see.
//
// Nothing need be told to anybody: every daemon reads the same records, when it starts, when a job of its node went on from somewhere or committed for
// the first time, and now and then. What is said of it is a reason to look sooner; lost, late or repeated it does no harm.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/lineage.hpp"
#include "engine/node.hpp"

namespace cairn {

// Why an image that an open with this epoch took is dead; nothing while it may be needed, or is committed. Pure.
std::optional<std::string> why_dead(const LineageRecords& records, const std::vector<CatalogEntry>& entries, const VersionKey& key, std::uint64_t epoch);

// Removes what attempts at a dead version left under persistent, a tombstone first (removal.hpp). The tombstone stays: `cairn gc` lifts it when the
// job is over. Where nothing is left, or the version was committed after all, nothing is done.
Task<Status> clear_dead(World& world, Layout layout, Undecided dead, Nanos io_wait);

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
