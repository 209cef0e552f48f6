// Jobs: what a node remembers of the jobs it takes part in, so that a daemon started again can finish what an earlier
// one left.
//
// Kept in scratch: the roster with the secret (jobs/<incarnation>, mode 0600). Kept under persistent: the roster once,
// and the newest address of each daemon (catalog/layout.hpp), so that the others of the job find a daemon that was
// started again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/boot.hpp"
#include "daemon/persistent_retention.hpp"
#include "daemon/slots.hpp"
#include "copies/scratch.hpp"
#include "world/real/worker_pool.hpp"

namespace cairn {

inline constexpr Nanos try_again = 2 * second;  // what a file system refused, and may give later

class Jobs {
  public:
    Jobs(World world, WorkerPool& workers, Node& node, Slots& slots, Layout layout, ScratchLayout scratch,
         std::string node_name, RetentionRule persistent_rule, Nanos io_wait);

    // Remembers the job in both places, then joins. Calls for one incarnation take turns: many ranks join at once, and
    // only the first one writes.
    Task<Status> join(Roster roster, NodeIndex self);

    // This node is its job's node 0, whose daemon coordinates.
    bool coordinates(Id128 incarnation) const;
    std::vector<Id128> known() const {
        std::vector<Id128> incarnations;
        for (const auto& [incarnation, job] : known_)
            if (!joining_.count(incarnation)) incarnations.push_back(incarnation);
        return incarnations;
    }
    // Some image is being looked into whose client is gone (look_into).
    bool is_looking() const { return looking_ != 0; }
    // Of a job that is over, where the node has forgotten it: what is kept of it in files stays until this daemon ends (forget_ended).
    void let_go(Id128 incarnation) { known_.erase(incarnation); }
    // Nothing for a job that did not join.
    std::optional<std::uint64_t> epoch_of(Id128 incarnation) const;

    // What an earlier daemon left in scratch: committed images are kept, others are flushed on, what holds nothing
    // goes. Fails only when it is over. Directories are asked until they answer; a file that can not be read, a few times. It stays where it
    // is then, and so do the jobs: it may be of one of them.
    Task<Status> adopt_scratch(std::function<bool()> over);
    // Looks at images that a restart of the machine may have torn, and goes on with those whose job could not be joined, because persistent was
    // away; ends when there are none, or it is over.
    Task<void> adopt_waiting(std::function<bool()> over);
    // Tells where this daemon is to be found of jobs that joined while persistent was another file system than theirs, once it is back. Ends when it
    // is over.
    Task<void> publish_late(std::function<bool()> over);
    // Scratch may hold images of this job that the node was not given yet.
    bool has_unseen(Id128 incarnation) const;
    // Images that could not be read when their job was told of again. Ends when it is over.
    Task<void> flush_orphans_late(std::function<bool()> over);
    bool verifying() const { return verifying_; }
    // Files of scratch could not be read, for a reason that may pass.
    bool has_unread() const { return has_unread_; }
    // Why scratch is not adopted yet: what could not be read when it was looked at last.
    const Status& scratch_problem() const { return scratch_problem_; }
    // An image that may have been sealed by somebody who could not say so any more.
    Task<void> look_into(Slots::Left left);
    // Forgets the jobs that have nothing left to finish: at the end of the daemon.
    Task<void> forget_ended(Nanos deadline);

  private:
    struct Known {
        Roster roster;  // as last joined
        NodeIndex self = 0;
        bool published = false;  // under persistent
    };
    struct Unverified {
        LocalImage image;
        bool committed = false;
        int io_errors = 0;
    };

    Task<Status> remember(Roster roster);
    Task<Status> publish(Roster roster, NodeIndex self);
    Task<Status> publish_once(std::string path, Bytes bytes);
    Task<Status> replace(std::string path, Bytes bytes);
    Task<Result<Roster>> find_roster(Id128 incarnation);
    Task<Status> join_again(Id128 incarnation);
    Task<void> adopt(LocalImage image);
    Task<std::shared_ptr<Boot>> look_at_boot(std::function<bool()> over);
    template <class Scan>
    Task<Result<Scan>> look_at_all(Task<Result<Scan>> (*look)(World&, ScratchLayout, Nanos), std::function<bool()> over);
    Task<Status> find_rosters(std::function<bool()> over);
    Task<Result<ScratchScan>> find_images(std::function<bool()> over);
    Task<void> wait_for_scratch(Status why);
    Task<Status> drop_unproved(ScratchScan& scan, std::function<bool()> over);
    Task<bool> drop_torn(LocalImage image, Status why);
    Task<void> verify(Unverified one);
    Task<void> take_left(Slots::Left left);
    Task<void> note_boot();
    Task<void> flush_on(LocalImage image);
    Task<void> flush_orphans(Id128 incarnation);
    Task<Code> look_at_manifest(VersionKey key);
    Task<void> find_let_go(std::map<Id128, Roster>* out, Nanos deadline);
    Task<void> forget(Id128 incarnation, Nanos deadline);

    World world_;
    WorkerPool& workers_;
    Node& node_;
    Slots& slots_;
    Layout layout_;
    ScratchLayout scratch_;
    std::string node_name_;
    RetentionRule persistent_rule_;
    Nanos io_wait_;
    std::map<Id128, Known> known_;
    std::map<Id128, Roster> found_;    // in scratch, at the start
    std::vector<LocalImage> waiting_;  // adopted, of jobs that could not be joined yet
    std::map<Id128, std::vector<std::string>> orphans_;  // slots of images that were adopted, and whose job nothing here tells of
    Status scratch_problem_;
    bool knows_images_ = false;        // it has looked at all of scratch
    bool has_unread_ = false;  // files of scratch, for a reason that may pass: any job may be theirs
    std::map<std::string, Id128> unseen_;  // slots of images that are not committed, and that the node was not given yet
    bool told_of_reserve_ = false;  // that something else stands in its place
    Boot boot_;
    std::vector<Unverified> unverified_;  // adopted, and doubtful
    bool verifying_ = false;              // until none is
    std::size_t looking_ = 0;             // into images of clients that are gone
    // Looked at, at the start: ok committed (also when retention let it go since), cancelled given up, else not there.
    std::map<VersionKey, Code> manifests_;
    std::map<std::string, std::vector<CatalogEntry>> series_;  // read at the start, by name
    std::set<Id128> joining_;
    Event joined_;
};

}  // namespace cairn
