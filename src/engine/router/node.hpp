// Node: the flush side of one daemon. Hears of sealed images, takes part in the flush of each version (as coordinator, leader and
// follower, in any mix), and knows how far each version is. Each role is a room beside this one; router.hpp joins them.
//
// Single-threaded: everything is called from the world's loop. Nothing here blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/layout.hpp"
#include "engine/pace.hpp"
#include "copies/image_arrays.hpp"
#include "copies/scratch.hpp"
#include "engine/settings.hpp"
#include "engine/version_state.hpp"
#include "model/messages.hpp"
#include "storage/targets.hpp"
#include "world/world.hpp"

namespace cairn {

class Node {
  public:
    Node(World world, Layout layout, FlushSettings settings);
    ~Node();  // kills what runs (task.hpp); a real daemon calls stop() first
    Node(const Node&) = delete;

    // A job opened here, or was found in scratch. Again with the same incarnation: members' addresses are renewed.
    // invalid_argument when `self` is not in the roster.
    Status join(std::shared_ptr<const Roster> roster, NodeIndex self);
    bool knows(Id128 incarnation) const;
    std::uint64_t epoch_of(Id128 incarnation) const;  // 0: not known
    bool is_newest(Id128 incarnation) const;          // no newer open of its series is known here
    // What is known of a job that has ended goes, its versions too, as if this daemon had been started after it: late messages of it are nobody's. Who has
    // need of it joins again. False, and nothing goes, while a version that has not ended has images here or is coordinated here, or anything goes on.
    bool forget(Id128 incarnation);
    // From now on this is a dedicated I/O node of that name: it learns of jobs that have it as a member without ranks when they first speak to
    // it, from the roster under persistent, leads for them, and forgets them when they are over. Once.
    void serve_as_io_node(std::string name);

    // The storage targets of the persistent directory, as soon as they are known; replaces earlier ones. None at first. Never null.
    void set_targets(std::shared_ptr<const PlacementTargets> targets);
    const PlacementTargets& targets() const;

    // Who describes files that take a library to read (copies/image_arrays.hpp); nobody at first. Of images that are added from now on.
    void set_describers(Describers describers);

    // Whether scratch may hold images of a job that were not added yet: while it may, this node does not say that it lacks any.
    void set_unseen_images(std::function<bool(Id128 incarnation)> has_unseen);

    // Somebody begins to fill an image of a job that joined. All ranks of this node having begun, the version can be planned while they fill. Only time is lost
    // where nobody says so, or where the image is sealed with another size, or never.
    void begin_image(const VersionKey& key, const BegunImage& image);
    // Whoever began it gave it up, or is gone.
    void leave_image(const VersionKey& key, Rank rank);
    std::size_t filling() const;  // images that have begun here, and are neither sealed nor left
    // A sealed image of a job that joined. Sealing of all its ranks on this node starts the flush. Twice the same is fine; another image of
    // the same version and rank is already_exists: the first may be on its way. invalid_argument when a block is more than a buffer.
    Status add_image(LocalImage image);
    // Scratch wants the slot back: drops the image and its mapping. Refused (already_exists) while its version is being
    // flushed; always allowed once the version is final.
    Status drop_image(const VersionKey& key, Rank rank);
    // A write of this daemon into the image's slot did not end in time and may still take effect, whenever scratch answers: once it is dropped the
    // file must go, and hold no other image.
    bool may_be_written(const VersionKey& key, Rank rank) const;
    // Newer versions may be stored as what changed since this one: that is shorter as long as its images stay, and they may go.
    bool is_base(const VersionKey& key) const;
    // Of which images are here, or which this node coordinates; neither committed nor given up.
    std::vector<Undecided> undecided() const;
    // Nobody can need it (dead.hpp): its flush ends here, for good. A coordinator gives it up for all nodes.
    void give_up(const VersionKey& key, const Status& why);

    VersionState state(const VersionKey& key) const;
    // Who has not sealed it, for people: ranks of this node, else a node that the coordinator still waits for. Empty: nobody known, or it has
    // failed.
    std::string unsealed_by(const VersionKey& key) const;
    std::vector<VersionKey> versions() const;            // all it knows, oldest first
    const LocalImage* image(const VersionKey& key, Rank rank) const;
    // Ends when the version reached `level` (ok), failed (its failure; one that is not final and that the caller was told of already is no reason to
    // end), or at the deadline.
    Task<Status> wait(VersionKey key, Level level, Nanos deadline, std::uint64_t failures_told = 0);
    // The application gives a version up: its flush stops on all nodes, unless it committed first (then already_exists).
    Task<Status> cancel(VersionKey key, Nanos deadline);
    // Notified whenever any state() may have changed.
    Event& changed();

    bool idle() const;  // nothing sealed is on its way to being committed (failed ones count as idle)
    const NodeCounters& counters() const;
    Pace& pace();  // how fast the flushes of this node may move data; no limits until told
    // Finishes what it can by the deadline, starts nothing new; the keys not committed are returned. What failed is tried again, at once and until then, but for what
    // some rank never sealed, and what needs a node that stays away.
    Task<std::vector<VersionKey>> stop(Nanos deadline);

  private:
    struct Impl;
    static bool is_waited_for(const Impl& impl, const VersionKey& key);
    std::unique_ptr<Impl> impl_;
};

}  // namespace cairn
