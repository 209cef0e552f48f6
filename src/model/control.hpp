// What clients (the library, the cairn command) and their node's daemon say to each other over the daemon's socket. Every request has a
// number and gets exactly one answer with that number, in any order; a broken connection answers all of them with "unavailable".
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/status.hpp"
#include "model/levels.hpp"
#include "model/types.hpp"

namespace cairn::control {

inline constexpr std::uint32_t protocol = 1;  // client and daemon must agree; else Code::unsupported, naming both versions

// ---- requests ----

// First on every connection.
struct Hello {
    std::uint32_t protocol = control::protocol;
    std::string program_version;
    std::uint64_t pid = 0;
    bool is_application = false;  // a session: keeps the daemon from idling out
};
// A rank opened a session; the daemon joins the job as member `self`. Repeated after a reconnect.
struct Join {
    Roster roster;
    NodeIndex self = 0;
    Rank rank = 0;
};
// A slot of at least `bytes` for an image of `rank`. Waits while scratch is full, to wait_ms (when_full = wait), or takes the oldest
// that may go (replace_oldest). The slot's state word is invalid when it is handed out. The connection owns it until Sealed or Release.
struct Acquire {
    VersionKey key;
    Rank rank = 0;
    std::uint64_t bytes = 0;  // of the slot file
    std::uint64_t wait_ms = 0;
    std::uint64_t image_bytes = 0;  // that the image will have, in such blocks
    std::uint64_t block_bytes = 0;  // 0: it is not told
};
// The image in this slot is sealed.
struct Sealed {
    VersionKey key;
    Rank rank = 0;
    std::string path;
};
// The slot was not used after all.
struct Release {
    std::string path;
};
// Answers when the version reached the level, failed once more than the client was told, or after wait_ms (0: at once).
struct Wait {
    VersionKey key;
    Level level = Level::none;
    std::uint64_t wait_ms = 0;
    std::uint64_t failures_told = 0;
};
struct Cancel {
    VersionKey key;
};
// Sealed images of a series in this node's scratch; they stay put until Unpin or until the connection ends.
struct Images {
    std::string name;
};
struct Unpin {};
struct GetStatus {};
// Finish what can be finished within wait_ms, then end.
struct Stop {
    std::uint64_t wait_ms = 0;
};

// capture.mode = through: this rank waits in its checkpoint, and gives this image until its version has ended, or the connection has. Asked again on a new
// connection it is the same image, given by the same process.
struct Offer {
    ImageHeader header;  // where things would lie in a slot means nothing
};
// `piece` was written where it was wanted (0: none yet); what is wanted next? Answers when something is, when the version ended or failed once more than
// the client was told, or after wait_ms.
struct Give {
    std::uint64_t image = 0;  // as Offered
    std::uint64_t piece = 0;
    std::uint64_t wait_ms = 0;
    std::uint64_t failures_told = 0;
};
// The next image of this connection's rank will need a slot of about so many bytes. One is made before it is asked for, where there is room to spare.
// Answered at once with what there is so far.
struct Prepare {
    Rank rank = 0;
    std::uint64_t bytes = 0;  // of the slot file
    std::int32_t numa_node = -1;  // where the rank runs; -1: not known
};

// ---- answers ----

struct Failed {
    Code code = Code::internal;
    std::string text;
};
struct Done {};
struct Welcome {
    std::uint32_t protocol = control::protocol;
    std::string program_version;
    std::uint64_t pid = 0;
    std::string node;
    std::string address;  // of the daemon, for other daemons
    std::uint32_t format = 1;  // the newest that it knows, and the one that it writes
    bool through = false;      // it takes an Offer; what is older does not know the word
    bool prepares = false;     // and a Prepare
};
struct Slot {
    std::string path;
    std::uint64_t bytes = 0;  // of the file, all allocated; at least what was asked for
    bool fresh = false;       // never mapped before: its pages are cold
};
struct State {
    Level level = Level::none;
    Code code = Code::ok;  // of the last failure; ok: none
    std::string text;      // of the failure; without one: who has not sealed it, empty where nobody is known
    bool final = false;
    std::uint64_t failures = 0;  // so far, the standing one included
};
struct ImageList {
    struct Entry {
        VersionKey key;
        std::uint64_t epoch = 0;
        Parent parent;
        Rank rank = 0;
        std::uint32_t ranks = 0;
        std::uint64_t bytes = 0;
        std::string path;
    };
    std::vector<Entry> images;
    bool unread = false;  // there are files besides that could not be read, and may hold others
};
struct NodeStatus {
    std::string node;
    std::uint64_t pid = 0;
    std::string address;
    std::uint64_t uptime_ms = 0;
    std::string storage_backend;  // "io_uring" or "threads"
    std::uint32_t sessions = 0;
    std::uint64_t captured_bytes = 0, sent_bytes = 0, received_bytes = 0, written_bytes = 0;
    std::uint64_t scratch_bytes = 0;              // held by slots
    std::uint64_t anonymous_bytes = 0, anonymous_peak_bytes = 0;
    std::uint64_t versions_committed = 0, attempts_failed = 0;
    double last_flush_s = 0;
    std::uint64_t last_flush_bytes = 0;
    struct Writer {
        double received_s = 0, local_s = 0;
        std::uint64_t received_bytes = 0, local_bytes = 0;
    };
    std::vector<Writer> writers;  // of the last flush led here
    struct Flush {
        VersionKey key;
        Level level = Level::none;
        Code code = Code::ok;
        std::string text;
        std::uint64_t bytes = 0, written_bytes = 0, expected_bytes = 0;
    };
    std::vector<Flush> versions;
    std::vector<std::string> targets;  // storage targets of the persistent directory; none: not known, or not chosen
    bool io_node = false;
    std::string cpu_class, cpu_class_why;  // of the daemon's threads, for people
    std::uint32_t processors = 0, processors_in_machine = 0;  // that it may run on; that there are
    struct Card {
        std::string interface;
        std::uint32_t rate_mbps = 0;  // 0: not known
        std::uint32_t nodes = 0;      // other daemons that it sends to over this card
    };
    std::vector<Card> cards;  // of the network, in the order of preference; none: the provider does not say
    std::string card;         // the one in use
    std::string card_choice;  // why the first of them is first
};
struct Stopped {
    std::vector<VersionKey> unfinished;  // sealed in scratch, not committed: finished by the next daemon
};

struct Offered {
    std::uint64_t image = 0;
};
// Bytes [offset, length) of the image are to be written to the front of a window: shared memory of the daemon, whose descriptor comes beside the bytes of the
// answer (SCM_RIGHTS) where this image was not given that window before.
struct Wanted {
    std::uint64_t piece = 0;  // 0: nothing is wanted now
    std::uint64_t offset = 0, length = 0;
    std::uint64_t window = 0, window_bytes = 0;
    State state;              // of the version
    int descriptor = -1;      // here, of the window; never among the bytes. Borrowed.
};

// Free slots of this connection that are ready: large enough, their pages there. They are not handed out yet, and may be gone when they are asked for.
struct Prepared {
    std::vector<Slot> slots;
    bool more_to_come = false;  // ask again in a while
};

using Request = std::variant<Hello, Join, Acquire, Sealed, Release, Wait, Cancel, Images, Unpin, GetStatus, Stop, Offer, Give, Prepare>;
using Answer = std::variant<Failed, Done, Welcome, Slot, State, ImageList, NodeStatus, Stopped, Offered, Wanted, Prepared>;

}  // namespace cairn::control
