// Session: what a cairn_session* is. One open of one series by one rank; open.cpp opens it, session.cpp takes
// checkpoints, survey.cpp and restore.cpp go back.
//
// Two locks: `main` is held by every call but wait, test and cancel, each of which takes a connection of its own, so that
// waiting for a flush keeps nobody from the next checkpoint, nor from giving it up. `state` guards the little that all
// sides read.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/config.hpp"
#include "cairn/cairn.h"
#include "client/ahead.hpp"
#include "client/capture.hpp"
#include "client/daemon_link.hpp"
#include "client/exchange.hpp"
#include "client/hand.hpp"
#include "client/regions.hpp"
#include "catalog/catalog.hpp"
#include "catalog/layout.hpp"
#include "catalog/lineage.hpp"
#include "read/image_regions.hpp"
#include "read/restorable.hpp"

namespace cairn {

class ImageBytes;
class RealWorld;
class Windows;

// A version that can be gone back to, as all ranks agree on it.
struct KeptVersion : RestorableVersion {
    std::string local_path;                     // this rank's slot, as of the last survey; empty: none
    std::vector<Rank> from_parts;               // which ranks of this node have none, increasing
    std::shared_ptr<const ImageRegions> image;  // this rank's, once asked for
};

// A mutex that knows who holds it: a callback of the application runs inside a call, and must not wait for that call.
class Turn {
  public:
    void lock() {
        mutex_.lock();
        holder_ = std::this_thread::get_id();
    }
    void unlock() {
        holder_ = std::thread::id();
        mutex_.unlock();
    }
    bool is_mine() const { return holder_ == std::this_thread::get_id(); }

  private:
    std::mutex mutex_;
    std::atomic<std::thread::id> holder_{};
};

class Session {
  public:
    // Collective. `exchange` null: alone, or through files. Arguments may be anything: a rank whose options are bad
    // takes part in the agreement where there is an exchange, so that the others do not wait for it.
    static Result<std::unique_ptr<Session>> open(const cairn_options* options, std::unique_ptr<Exchange> exchange);
    Status close();
    // Without a word from the other ranks, which end this way, too.
    void part() { exchange_->part(); }

    // What is protected is changed by `change`, and a slot for it prepared.
    template <class F>
    Status protect(F&& change) {
        TRY(change(regions_));
        prepare_next();
        return {};
    }

    Status checkpoint(Version version);
    Status wait(Version version, int level, std::uint64_t timeout_ms);
    Status cancel(Version version);

    Result<Version> newest_not_above(Version limit);
    Result<std::vector<KeptVersion>> list();
    Result<std::shared_ptr<const ImageRegions>> image_of(Version version);  // local; never null
    // `names` null: all protected regions.
    Result<Version> restore(Version version, const std::vector<std::string>* names);

    std::string warnings() const;
    void set_last_error(const Status& status);
    std::string last_error() const;
    Rank rank() const noexcept { return rank_; }
    bool in_this_process() const;
    // In the child: the daemon must see the parent's end, also when the child lives on.
    void forked() {
        if (daemon_) daemon_->forked();
    }
    // Forgets the other ranks without a word to them: for the copy of a session in a forked child.
    void let_go() { static_cast<void>(exchange_.release()); }
    std::uint64_t process() const noexcept { return pid_; }

    Turn main;

  private:
    friend class RestoreRun;
    // A version that was taken by this session, or gone back to, and what the application was told of it.
    struct Taken {
        Id128 incarnation;
        bool committed = false;           // for good: who asks once more needs no daemon
        std::uint64_t failures_told = 0;  // of its flush
    };

    Session() = default;
    // open.cpp
    Status prepare(const cairn_options* options, const Exchange* exchange);
    Status read_settings(const cairn_options& options);
    Status check_directories();
    Status check_roots();
    Status meet(std::unique_ptr<Exchange> exchange, const Status& prepared, Deadline deadline);
    Status connect(Deadline deadline);
    Result<std::unique_ptr<RealWorld>> open_world() const;
    void adopt(HandsTogether hands);
    std::uint64_t scratch_epoch(Deadline deadline);
    Result<Roster> draw_incarnation(const std::vector<Member>& members, const Parent& parent, Deadline deadline);
    void add_io_nodes(Roster& roster, RealWorld& real, World& world, Nanos until);
    Status begin_incarnation(const Parent& parent, Deadline deadline);  // collective
    control::Join join_of(const Roster& roster) const;
    Status join(const Roster& roster, Deadline deadline);
    Status take_over(const Roster& roster, const Status& joined, Deadline deadline);  // collective

    // session.cpp
    Status check_version(Version version) const;
    Status capture_with_patience(const CapturePlan& plan);
    Status capture_into_slot(const CapturePlan& plan, Deadline own, bool& slot_lost);
    Status say_sealed(const control::Sealed& sealed, Deadline own);
    void prepare_next();
    std::optional<std::chrono::milliseconds> prepare_some();  // in the thread of ahead_
    std::optional<std::chrono::milliseconds> ask_ahead();
    Taken told(Version version) const;
    Status tell_reached(Version version, Level level);
    Status tell_failure(Version version, const control::State& state);
    template <class A>
    Result<A> ask_while_it_lives(const control::Request& request, Deadline own, std::uint64_t work_ms);
    static constexpr std::uint64_t answer_allowance_ms = 10'000;  // for the answer of a daemon that lives, on top of what it was asked to wait
    static constexpr std::uint64_t sign_of_life_ms = 1'000;       // from a daemon that has not answered in time, so that it is waited for a while yet
    template <class A>
    Result<A> ask_beside(const control::Request& request, Deadline deadline);
    Result<VersionKey> key_of(Version version) const;
    Result<bool> committed_on_disk(const VersionKey& key, Deadline deadline) const;

    // through.cpp
    Status give_through(const CapturePlan& plan, bool& offered);
    Status offer_and_give(const CapturePlan& plan, ImageBytes& bytes, bool& offered, bool& daemon_lost);
    Status give(ImageBytes& bytes, std::uint64_t image, const VersionKey& key, bool& daemon_lost);
    Status write_piece(ImageBytes& bytes, Windows& windows, const control::Wanted& wanted);
    Status take_back(const VersionKey& key, Status why);

    // survey.cpp
    Status survey(Deadline deadline);  // collective: fills kept_
    struct LocalImages;
    Result<LocalImages> local_images(Deadline deadline);
    void note_whole(const std::vector<Bytes>& all);
    FromRecord from_record(Id128 incarnation, const Parent& parent) const;
    Bytes look_at_persistent(const std::vector<SealedVersion>& sealed, Deadline deadline);
    Status check_ranks(const KeptVersion& kept) const;
    const KeptVersion* find_kept(Version version) const;
    std::vector<Rank> ranks_here() const;

    // restore.cpp
    Status continue_from(const KeptVersion& kept, Deadline deadline);  // collective
    Status name_parent(const Parent& parent, Deadline deadline);

    std::uint64_t pid_ = 0;
    std::string name_, node_, job_;
    Rank rank_ = 0;
    std::uint32_t ranks_ = 1;
    Settings settings_;
    Layout layout_;
    DaemonHome place_;
    std::unique_ptr<Exchange> exchange_;
    std::unique_ptr<DaemonLink> daemon_;
    std::vector<Member> members_;
    std::uint32_t files_ = 0;        // rank 0's
    FileLayout layout_of_files_ = FileLayout::parts;  // the same
    std::uint64_t block_bytes_ = 0;  // rank 0's
    bool is_through_ = false;        // the same: a version of which some images are in no scratch could not be finished from scratch
    std::uint64_t known_epoch_ = 0;  // the highest that any node's scratch had at the open

    RegionTable regions_;
    SlotMaps slots_;
    std::uint64_t other_bytes_ = 0;  // what callbacks and files took of the last slot
    unsigned asked_ahead_ = 0;      // since then
    std::int32_t numa_node_ = -1;   // where the application ran when it said so
    std::vector<KeptVersion> kept_;  // by version; of the last survey
    Status kept_tail_;               // not ok: there may be older ones, and which can not be told (Lineage::tail)
    std::string kept_notes_;         // what was passed over, one a line
    std::uint64_t fetches_ = 0;      // of all ranks together, so far
    bool looked_ = false;            // rank 0: every node has told all that its scratch held then
    std::vector<Parent> whole_;      // rank 0: versions of which they hold every rank's image, whoever took them

    mutable std::mutex state_;
    std::vector<std::unique_ptr<DaemonLink>> spare_links_;  // for wait, test and cancel
    Roster roster_;
    bool took_any_ = false;           // in this incarnation
    Version last_version_ = 0;        // taken, or gone back to
    std::map<Version, Taken> taken_;
    std::string last_error_, warnings_;

    std::unique_ptr<Ahead> ahead_;  // last: its thread uses all of the above
};

// What a checkpoint asks: it blocks for its own wait, and longer only as long as the daemon shows that it lives, up to answer_allowance_ms more than
// it may need. One that stands still (SIGSTOP, a debugger) must not hold the application.
template <class A>
Result<A> Session::ask_while_it_lives(const control::Request& request, Deadline own, std::uint64_t work_ms) {
    const Deadline longest = Deadline::in_ms(own.left_ms() + work_ms + answer_allowance_ms);
    auto answer = daemon_->ask_for<A>(request, Deadline::in_ms(std::max(own.left_ms(), sign_of_life_ms)));
    while (answer.code() == Code::deadline && !longest.passed() && daemon_->answers(longest.at_most_ms(sign_of_life_ms)))
        answer = daemon_->ask_for<A>(request, longest.at_most_ms(sign_of_life_ms));
    if (answer.code() != Code::deadline) return answer;
    const std::string who = daemon_->who();
    std::string why = answer.status().text();
    if (why.starts_with(who + ": ")) why.erase(0, who.size() + 2);  // a new connection that is not answered names it, too
    return Status(Code::deadline, std::move(why)).within(who + " gives no answer (capture.wait_ms; a stopped process goes on with SIGCONT)");
}

}  // namespace cairn
