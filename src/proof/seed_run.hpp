// The run of one scenario: what all of its steps (steps.hpp) and checks (promise.hpp) share, and no more.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

#include "proof/seeds.hpp"

namespace cairn::testing {

// What the test itself knows of jobs and versions, from what it did and what daemons told it: the promise is held against that.
struct Known {
    bool job_lives = false;
    Version next_version = 1;
    std::map<Id128, std::uint64_t> epochs;  // of each incarnation
    std::map<Id128, Parent> chains;         // where each came from, as far as it got to say so
    std::map<Id128, Nanos> recorded;        // since when others can know that
    std::map<std::uint64_t, Nanos> shown;   // since when the record of an epoch could be seen, durable or not
    std::map<std::uint32_t, std::vector<Nanos>> looked;  // when processes began to read that
    std::map<std::pair<std::uint32_t, std::string>, Nanos> publishing;  // by which process, which manifest, and since when
    std::set<std::string> parts;            // paths of all that ever were made
    std::map<std::string, std::set<NodeIndex>> writers;  // of each of these paths: the nodes whose daemons wrote there
    std::set<VersionKey> published;         // a manifest of theirs, whether or not anybody was told, and wherever that went
    std::map<VersionKey, bool> reported;    // called committed by some daemon at some time
    std::map<VersionKey, bool> removed;     // tried to remove; true: done, with a fence that stays
    struct Dependent {
        VersionKey base;
        bool is_published = false;
        bool is_removal_tried = false;
    };
    std::map<VersionKey, Dependent> dependents;  // versions that have the parts of another
    std::map<VersionKey, std::set<Version>> based_on;  // which versions of its job were stored as what changed since this one
    std::map<VersionKey, Nanos> fenced;     // since when
    std::set<VersionKey> sealed;            // by every rank
    std::map<Id128, std::uint64_t> captured;  // how many versions of each incarnation, whole or not
    std::set<std::string> flipped;          // records of the lineage that a bit turned in
    std::map<Id128, std::set<VersionKey>> whole;  // in all scratch together, when that incarnation named its parent, as its record says
    std::set<Id128> nameless;               // whose .open a repair had to write anew: it may have known of no version that tells the incarnation
    std::set<Id128> forgotten;              // whose parent a repair forgot, until a version of theirs tells it
    std::set<VersionKey> given_up;          // or cancelled: its tombstone stood before any manifest did
    std::optional<VersionKey> only_sealed;  // in scratch, when a job went on from there
    std::set<VersionKey> let_go;            // and not in every scratch any more
    std::set<VersionKey> versions_forgotten;  // by some daemon, with their job
    std::set<std::tuple<NodeIndex, Nanos, Id128>> jobs_forgotten;  // by which daemon (its node, and when it was started)
    std::map<std::pair<NodeIndex, Nanos>, VersionKey> oldest;  // that a daemon (its node, and when it was started) was last seen to remember
};

// A fault that waits for an operation of a daemon.
struct Strike {
    std::string operation;
    std::uint64_t before = 0;  // so many of them pass
    std::string on;            // a part of its path
    enum class Kind : std::uint8_t { kill, pause, crash, power, fail, hang, trouble, cancel, give_up, let_go, cover, lose } kind = Kind::kill;
    Nanos delay = 0;           // from the operation's beginning
    bool fails = false;        // the operation itself besides, perhaps after it took effect
    NodeIndex where = 0;       // cancel, give_up, let_go, lose: on this node
    Nanos lasts = 0;           // cover: until persistent is back
};

struct Strikes {
    std::optional<Strike> armed;
    std::uint64_t count = 0;                // armed so far: an old one that comes late does nothing
    std::optional<sim::Faults> after_this;  // one operation has faults of its own
};

// Somebody asks that a version be given up, and the run goes on meanwhile: the application at its daemon, or `cairn gc` in a process of its own.
struct Errand {
    Errand(VersionKey k, bool cancels) : key(std::move(k)), is_cancel(cancels) {}
    ~Errand() { if (process) process->kill(); }
    Errand(const Errand&) = delete;

    VersionKey key;
    bool is_cancel;
    bool tried_before = false;
    std::shared_ptr<std::optional<Status>> answer = std::make_shared<std::optional<Status>>();
    sim::Process* process = nullptr;  // gc's
    std::unique_ptr<Gate> gate;       // in it; goes when the process is dead
};

// A rank that waits while the run goes on.
struct Waiter {
    struct Answer {
        std::optional<Status> status;
        Nanos at = 0;
    };
    VersionKey key;
    Level level = Level::sealed;
    NodeIndex node = 0;
    sim::Process* process = nullptr;  // the daemon that it asked
    Nanos due = never;                // never: it has no deadline
    std::shared_ptr<Answer> answer = std::make_shared<Answer>();
};

class SeedRun {
  public:
    SeedRun(const Scenario& scenario, bool trace);
    SeedRun(const Scenario& scenario, ClusterOptions options, bool trace);
    SeedResult run();
    // Faults stop, and what was promised is held against what is left: the end of every run.
    void check_ending();
    SeedResult finish(std::string failure);

    // Of the step that is being taken.
    std::uint64_t draw(std::uint64_t below) { return below == 0 ? 0 : prng.next() % below; }
    bool chance(unsigned percent) { return draw(100) < percent; }
    void see(Saw what) { result.saw.set(static_cast<std::size_t>(what)); }
    template <class... Parts>
    void tell(const Parts&... parts) {
        std::ostringstream line;
        line << static_cast<double>(cluster.sim.now()) / second << " s: ";
        (line << ... << parts);
        result.story += line.str() + "\n";
    }
    void fail(std::string text);  // the first one counts

    const Scenario& scenario;
    sim::Prng prng;
    sim::Faults background;  // what goes wrong by itself while steps are taken
    SeedResult result;
    Known known;
    Strikes strikes;
    std::map<NodeIndex, std::uint64_t> decoded;  // runs, by whoever read on a node
    Cluster cluster;
    std::list<Waiter> waiters;
    std::list<Errand> errands;  // last: processes go first

  private:
    void take(const Step& step);
};

}  // namespace cairn::testing
