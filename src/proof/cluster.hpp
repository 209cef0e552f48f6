// A simulated cluster for tests of the engine: nodes with a daemon each, ranks that capture described images, jobs that open, die and
// open again. What a rank's bytes are follows from (incarnation, version, rank) alone, so that whatever comes back can be checked.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/router/node.hpp"
#include "format/image.hpp"
#include "format/roster.hpp"
#include "proof/given.hpp"
#include "read/fetch.hpp"
#include "read/restorable.hpp"
#include "world/sim/simulation.hpp"

namespace cairn::testing {

inline constexpr Nanos io_span = 60 * second;  // of what a test does itself with files

struct ClusterOptions {
    std::uint64_t seed = 1;
    std::vector<std::uint32_t> ranks_per_node = {2, 2};  // none: a dedicated I/O node; not the first one
    FileLayout layout = FileLayout::parts;
    std::uint32_t files = 1;  // with that layout
    std::uint64_t block_bytes = 4096;
    std::function<std::uint64_t(Rank, Version)> image_bytes = [](Rank, Version) { return 100'000; };
    FlushSettings settings;
    std::uint64_t io_node_buffer_bytes = 0;  // 0: as the others have
    RestoreSettings restore;
    std::vector<std::string> roots;  // below which the jobs' parts lie; below persistent in the simulation, where no checkpoint's name leads
    bool persistent_too = false;  // the jobs name persistent among their roots
    std::function<bool(Rank, Version)> once = [](Rank, Version) { return false; };  // the image can be read once only, and is in no slot
    // The image is in no slot either: its rank gives its bytes while it waits, in such a way. Nothing: it is in a slot, or can be read once only.
    std::function<std::optional<GivingWay>(Rank, Version)> asked = [](Rank, Version) { return std::nullopt; };
    // What a rank that begins to fill an image of so many bytes says that it will have; nothing: it does not say.
    std::function<std::optional<std::uint64_t>(Rank, Version, std::uint64_t)> begins = [](Rank, Version, std::uint64_t) { return std::nullopt; };
    bool old_format = false;  // images and rosters are as a release with format 1 left them
    std::uint32_t alike = 0;    // ranks so far apart have the same bytes, as far as both are long; 0: each has its own
    std::uint32_t regions = 0;  // of each image that has bytes, some of them tiny; 0: one, of all of it
    bool placed = false;  // the engine knows the model's storage targets
    std::size_t share = 0;  // ranks of a node restore at the same time, and share runs on so many shelves; 0: one after the other
    sim::Model model;
    sim::Faults faults;
};

struct Daemon {
    sim::Process* process = nullptr;
    std::unique_ptr<Node> daemon;
    std::unique_ptr<Gate> gate;  // the daemon's own start-up, and what its clients ask
    bool booted = false;
    Nanos started = 0;
    std::set<Id128> taken_in;  // jobs that ranks spoke of, being written into scratch
    // What of scratch was not gone through yet.
    struct Unseen {
        bool all = true;
        std::set<Id128> jobs;
    };
    std::shared_ptr<Unseen> unseen;
};

// One node and the daemon on it, if any. Earlier ones that stood still when it was started may live, too.
struct Host : Daemon {
    sim::SimNode* node = nullptr;
    bool is_io_node = false;
    bool gone = false;  // it does not come back
    std::vector<Daemon> formers;
    bool was_succeeded = false;  // ever
    std::uint32_t next_slot = 0;
    std::vector<std::string> free_slots;  // files that an image has left
    std::set<std::pair<VersionKey, std::string>> left;  // which image, which file, since its daemon was started
    std::uint32_t slots_reused = 0;
};

// A node of a job's roster: its host, whatever its place there, and how many ranks run on it.
struct Seat {
    NodeIndex host = 0;
    std::uint32_t ranks = 0;
};

class Cluster {
  public:
    explicit Cluster(ClusterOptions options);
    ~Cluster();

    sim::Simulation sim;
    ClusterOptions options;
    Layout layout{"/persistent"};
    std::deque<Host> hosts;
    std::map<VersionKey, std::set<Rank>> sealing;  // which ranks sealed a version, or are about to
    Roster roster;  // of the newest open

    // The next job's nodes, in the order of its roster, I/O nodes last; those of the first one are as the options say, from host 0 on. All jobs have
    // as many ranks.
    void seat(std::vector<Seat> seats) { seats_ = std::move(seats); }
    const std::vector<Seat>& seats() const { return seats_; }
    // The host whose daemon coordinates: of the newest open, or of another one.
    NodeIndex coordinator() const { return seats_.front().host; }
    NodeIndex coordinator(Id128 incarnation) const { return seats_of(incarnation).front().host; }

    std::uint32_t ranks() const;
    NodeIndex node_of(Rank rank) const { return node_of(rank, roster.incarnation); }
    NodeIndex node_of(Rank rank, Id128 incarnation) const;
    std::vector<Rank> ranks_on(NodeIndex node) const;  // of the newest open
    // Of that open: which ranks each node with ranks has, by node; and how many files a version has.
    std::vector<std::vector<Rank>> ranks_by_node(Id128 incarnation) const;
    std::uint32_t files(Id128 incarnation) const;
    bool is_io_node(NodeIndex node) const { return hosts[node].is_io_node; }
    // A host that is there, for whoever only reads.
    NodeIndex reader() const;
    ScratchLayout scratch(NodeIndex node) const;

    // Daemons: started, they find jobs and images in scratch by themselves.
    void start_daemon(NodeIndex node);
    void kill_daemon(NodeIndex node);   // kill -9
    // The daemon stands still, and a second one is started beside it.
    void succeed_daemon(NodeIndex node);
    void kill_formers(NodeIndex node);
    // The end in order: finishes what it can, takes away the records of jobs with nothing left to finish, and ends. `answer`: what is left to the next one.
    struct Ended {
        bool done = false;
        std::vector<VersionKey> unfinished;
    };
    void stop_daemon(NodeIndex node, Nanos wait, std::shared_ptr<Ended> out);
    // The present job's ranks on this node tell a daemon of it that does not know it.
    Task<void> introduce(World world, NodeIndex node);
    // The same where the daemon knew it and its scratch before: it does not look at that again.
    Status join_again(NodeIndex node);
    void crash_node(NodeIndex node);    // power loss: scratch is gone
    void restart_node(NodeIndex node);  // empty, no daemon yet
    void lose_node(NodeIndex node);     // power loss, and nobody restarts it
    NodeIndex add_node();               // empty, with a daemon: a job may have ranks there

    // A job opens: a new incarnation and epoch, known to every living daemon and kept in every living node's scratch.
    Status open_job(Nanos limit = 60 * second);
    // Its two halves: so many jobs claim their epochs at the same time, the oldest first in what is returned; and one of them becomes the newest open.
    Result<std::vector<Roster>> claim_jobs(std::size_t count, Nanos limit);
    Status begin_job(Roster job, Nanos limit);
    // An image has left this file: the next that is captured there is written over it.
    void free_slot(Host& host, const std::string& path);
    struct GiveBack;
    struct Filling;
    // The job goes on from there, and every daemon is told so and keeps it in its node's scratch.
    Status name_parent(Parent parent, Nanos limit = 60 * second);
    // Captures and seals the image of one rank in its node's scratch and tells the daemon when there is one.
    // `twist`: not 0 gives the image other bytes. Then it is of a rank that takes a version again, and when that is refused, its slot is given back.
    Task<Status> capture(sim::Process& client, Rank rank, Version version, std::uint64_t twist = 0);
    // Any of its images is in no slot: it is lost with that rank's daemon.
    bool has_unslotted(Version version) const;
    std::map<std::pair<VersionKey, Rank>, std::shared_ptr<Giving>> giving;  // of the images that ranks give, so far
    std::shared_ptr<bool> ranks_may_be_late = std::make_shared<bool>(true);
    // Every rank, each in a process of its own; ok when all are sealed.
    Status capture_all(Version version, Nanos limit = 60 * second);
    // The state of a version of the newest incarnation on a node.
    VersionState state(NodeIndex node, Version version) const;
    VersionKey key(Version version) const { return {roster.name, version, roster.incarnation}; }
    bool run_until_committed(Version version, Nanos span);
    bool has_moved_work() const;    // any daemon there ever was has taken some over
    bool has_come_encoded() const;  // to a daemon that lives: a chunk, from its follower
    // Of a version's parts, on each storage target.
    std::vector<std::uint64_t> bytes_on_targets(Version version);

    // What a restarting job can go back to, as its rank 0 sees it. `sealed`: what its ranks found in scratch.
    Task<Result<RestorableSeries>> look(World world, std::vector<SealedVersion> sealed) const;
    // The same from a fresh process on some host, of persistent alone.
    Result<RestorableSeries> look_now(Nanos limit = 600 * second);
    // One rank's image, as that rank restores all its regions. internal when what it was given is not what was captured, or not each byte of it once.
    // `content`: whose bytes the version has.
    Task<Fetched> fetch(World world, ImagePlaces places, VersionKey content) const;
    // The same from a fresh process on this host.
    Fetched fetch_now(NodeIndex on, ImagePlaces places, VersionKey content, Nanos limit = 600 * second);
    // So do several ranks of one host at the same time, each in a process of its own. One of them may be killed after a while.
    struct Killed {
        std::size_t at = 0;
        Nanos after = 0;
    };
    std::vector<Fetched> fetch_together(NodeIndex on, std::vector<ImagePlaces> places, VersionKey content, std::optional<Killed> killed = std::nullopt, Nanos limit = 900 * second);
    // Those of them that have no slot share what they read, as the library's do: what the first says before the second, which takes each as it is told.
    void share(NodeIndex on, std::vector<ImagePlaces>& places) const;
    std::vector<Fetched> fetch_as_told(NodeIndex on, const std::vector<ImagePlaces>& places, VersionKey content, std::optional<Killed> killed = std::nullopt, Nanos limit = 900 * second);
    // Every rank's image of a committed version, from its parts. not_found when it is not there, or given up.
    Task<Status> restore(World world, VersionKey key, VersionKey content) const;
    Task<Status> restore(World world, VersionKey key) const { return restore(std::move(world), key, key); }
    // The same from a fresh process on this host, or on some.
    Status check_committed(VersionKey key, std::optional<NodeIndex> on = std::nullopt, Nanos limit = 600 * second) { return check_committed(key, key, on, limit); }
    Status check_committed(VersionKey key, VersionKey content, std::optional<NodeIndex> on, Nanos limit = 600 * second);
    // Restore point: the newest committed version of the current lineage, or nullopt; as a restarting job sees it.
    Result<std::optional<Manifest>> newest_committed(Nanos limit = 600 * second);
    // Of whatever lineage; also of a tombstone.
    Result<Manifest> manifest_now(VersionKey key, Nanos limit = 600 * second);

    static std::uint64_t content_seed(Id128 incarnation, Version version, Rank rank);
    static std::uint64_t content_seed(const ClusterOptions& options, const VersionKey& key, Rank rank) {
        return content_seed(key.incarnation, key.version, options.alike == 0 ? rank : rank % options.alike);
    }

  private:
    const std::vector<Seat>& seats_of(Id128 incarnation) const;
    static std::string name_of(NodeIndex node) { return "n" + std::to_string(node); }
    static NodeIndex place_in(const Roster& job, NodeIndex node);
    Task<void> boot(NodeIndex node, World world);
    Task<void> finish_daemon(NodeIndex node, World world, Nanos wait, std::shared_ptr<Ended> out);
    Task<void> forget_job(World world, Roster job, NodeIndex node);
    Task<void> take_in(World world, Roster job, NodeIndex node);
    static void give_found(const Host& host, Node& daemon, LocalImage image);
    Task<void> adopt(World world, Node* daemon, NodeIndex node, Id128 incarnation);
    Task<bool> record_address(World world, Roster job, NodeIndex place);
    Task<void> record_address_late(World world, Roster job, NodeIndex place);

    std::vector<Seat> seats_;
    bool moved_work_ = false;  // of daemons that live no more
    mutable std::uint64_t shares_ = 0;
    std::map<Id128, std::vector<Seat>> seated_;  // of all opens
    Bytes as_left(Bytes framed) const;  // by the release that wrote it
    Task<void> write_roster(World world, Roster job, std::string path, bool& done);
    ImageHeader header_of(Rank rank, Version version) const;
    static Task<Status> wait_for_boot(World world, const Host& host);
    Task<void> begin(World world, ImageHeader header);
    Task<Status> capture_unslotted(sim::Process& client, ImageHeader header, std::uint64_t seed, std::optional<GivingWay> way);
    Task<Result<FilePtr>> open_slot(World world, Host& host, NodeIndex node, std::uint64_t bytes, Nanos deadline);
    Task<void> replace_roster(World world, std::string path, bool& done);
};

}  // namespace cairn::testing
