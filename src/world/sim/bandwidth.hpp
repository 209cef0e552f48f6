// Bandwidth: how transfers share what they pass: cards, servers, targets. A transfer uses several resources at once and is done when it is
// through all of them.
//
// exact: max-min fair shares by progressive filling, computed anew at every instant at which a transfer begins or ends, for all that hang together with
// it: where that is everything, the cost grows with the square of what is under way, good for some hundred nodes. All rates grow alike, in units of each
// transfer's largest use, until a resource has no more; its transfers stay there, the others go on.
//
// queued: every resource is a fair queue in virtual time: V goes on by rate / n bytes a second with n uses at it, and a use that comes at V is through
// at V + bytes. A begin or an end costs the logarithm of what is at its resources, whatever happens elsewhere. A transfer that is held back at one
// resource takes its share of the others no longer than its bytes there last; both keep a resource busy for as long as it has anything to do, which is
// why they agree where transfers come in windows of several (bandwidth_test.cpp: within 5 %).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <vector>

#include "world/clock.hpp"

namespace cairn::sim {

class Simulation;

// What a resource gives in all.
struct Capacity {
    double bytes_per_s = 0;        // 0: infinitely fast
    double crowd = 0;              // with n streams at it, n > crowd_from, it gives bytes_per_s / (1 + crowd x (n - crowd_from)): heads that go to and fro
    std::uint32_t crowd_from = 1;
    bool each_counts = false;      // every transfer counts for `crowd`, whatever its stream
};

class Bandwidth {
  public:
    enum class Sharing : std::uint8_t { exact, queued };
    using Resource = std::uint32_t;
    struct Use {
        Resource resource = 0;
        std::uint64_t bytes = 0;
    };
    static constexpr std::size_t uses_max = 4;
    struct Uses {
        std::array<Use, uses_max> all = {};
        std::size_t count = 0;
        Uses(std::initializer_list<Use> uses) {
            for (const Use& use : uses) all.at(count++) = use;
        }
    };

    Bandwidth(Simulation& sim, Sharing sharing) : sim_(sim), sharing_(sharing) {}
    Bandwidth(const Bandwidth&) = delete;

    Resource add(Capacity capacity);
    // From now on; what is under way goes on at the new rate.
    void set(Resource resource, Capacity capacity);
    // Calls done() when all uses are through, from the event queue, never from within this call. Transfers of one stream count once for `crowd`.
    void begin(const Uses& uses, std::uint64_t stream, std::function<void()> done);

    std::uint64_t carried_bytes(Resource resource) const { return links_[resource].carried_bytes; }  // of all that began
    double busy_s(Resource resource) const;  // with anything at it
    std::size_t under_way() const { return under_way_; }

  private:
    struct Transfer {
        Uses uses{};
        std::uint64_t stream = 0;
        std::function<void()> done;
        std::uint32_t left = 0;       // queued: uses not through
        bool active = false;
        // exact
        double left_share = 1;  // of it all, when it was updated
        double rate = 0;        // shares a second
        double largest = 0;     // of its uses, bytes
        Nanos updated = 0;
        std::uint32_t generation = 0;                  // of its rates: ends that were computed for an earlier one are not true any more
        std::array<std::uint32_t, uses_max> places{};  // of its uses among their links' members
        bool fixed = false;                            // while shares are computed
    };
    using Slot = std::uint32_t;
    struct Member {  // exact: one use at a link
        Slot slot;
        std::uint8_t use;
    };
    struct End {  // exact
        Nanos when;
        std::uint64_t number;  // those of the same time, in the order in which they were computed
        Slot slot;
        std::uint32_t generation;
        bool operator>(const End& other) const { return when != other.when ? when > other.when : number > other.number; }
    };
    struct Level {  // exact: of a link, as it was when so many of its members were fixed
        double level;
        std::uint32_t filled;
        Resource resource;
        bool operator>(const Level& other) const { return level != other.level ? level > other.level : resource > other.resource; }
    };
    struct Tag {  // queued: one use
        double at;
        std::uint64_t number;  // of the use: first come, first through where tags are the same
        Slot slot;
        bool operator>(const Tag& other) const { return at != other.at ? at > other.at : number > other.number; }
    };
    struct Link {
        Capacity capacity;
        std::map<std::uint64_t, std::uint32_t> streams;  // only where they crowd
        std::uint32_t users = 0;  // uses under way
        std::uint64_t carried_bytes = 0;
        double busy_s = 0;
        Nanos busy_since = 0;
        // queued
        std::priority_queue<Tag, std::vector<Tag>, std::greater<>> tags;
        double virtual_bytes = 0;
        Nanos updated = 0;
        Nanos due = never;  // when it is looked at next
        // exact
        std::vector<Member> members;
        bool marked = false, gathered = false;
        double free = 0, wanted = 0;         // while shares are computed
        std::uint32_t open = 0, filled = 0;  // its members not fixed, and fixed

        double rate() const;
    };

    Slot take_slot();
    void enter(Link& link, std::uint64_t stream);
    void leave(Link& link, std::uint64_t stream);
    void end(Slot slot);

    void advance(Link& link);
    void look_again(Resource resource);
    void look(Resource resource);

    bool takes_time(const Use& use) const { return links_[use.resource].capacity.bytes_per_s > 0 && use.bytes > 0; }
    void join(Slot slot);
    void part(Slot slot);
    void mark(Resource resource);
    void change();
    void gather(Resource resource);
    void share();
    void fix(Slot slot, double level);

    Simulation& sim_;
    const Sharing sharing_;
    std::vector<Link> links_;
    std::vector<Transfer> transfers_;
    std::vector<Slot> free_slots_;
    std::vector<Slot> ended_;  // of one look
    std::uint64_t uses_begun_ = 0;
    std::size_t under_way_ = 0;
    // exact
    bool change_due_ = false;
    std::vector<Resource> marked_;    // where something changed
    std::vector<Resource> together_;  // whose shares are computed
    std::vector<Resource> touched_;   // by the members of one that are fixed
    std::vector<Level> levels_;       // a heap
    std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
    std::uint64_t next_end_ = 0;  // the event
};

}  // namespace cairn::sim
