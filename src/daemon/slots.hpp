// Slots: the files of one node's scratch that hold images (SlotKind::image), from hand to hand: free -> being made -> owned by a
// connection -> image -> free.
//
// Rules kept (rule 4 and the promise):
//  - space is allocated before a slot is handed out, so that no page of it can be missing when it is mapped (SIGBUS);
//  - the state word is invalid when a slot is handed out, and already when it becomes free;
//  - a slot's file never shrinks, and its name is never used again in a daemon's life: clients keep files mapped by
//  name;
//  - whoever says what it will need gets a slot made before it asks for one, and a second while its first version is flushed; their pages are
//    cleared until somebody asks for them: making them takes several times the copy. Only where there is room to spare, and given back
//    where memory gets short before they were used (slots_ahead.cpp);
//  - a slot whose writer got lost without sealing it is unlinked, never handed on: the writer may be alive, and still
//  be writing;
//  - the newest committed version of a series stays until a newer one is committed; so does one that some rank never
//    sealed, and no longer; what nobody can need any more goes at once (catalog/dead.hpp).
//
// Which free slot an image gets: the one that this connection had last (mapped there, its pages warm), then the one its
// rank had, then one whose last owner is gone; another one's warm slot only when there is no room for a new one. Among
// equals the one freed last; so a slot more than a connection needs, from a time when flushes were slow, is passed over
// again and again, and given back. One that fits and is free goes before any that is still being cleared: a file that can
// not be cleared holds nobody up who can do without it, and who can not waits for `clear_wait`. When there is no room: committed versions but the newest are given up first, they
// are on persistent; then, with replace_oldest, versions older than one that is sealed on every node, except the oldest
// that is on its way: its flush is left to finish, else none ever would.
//
// Single-threaded, on the loop; all that asks the file system runs in workers. A slot that is given back is handed out again when its state word is invalid: whoever
// wants one waits for that, as for one that is allocated.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/memory.hpp"
#include "daemon/retention.hpp"
#include "daemon/slot_files.hpp"
#include "engine/router/dead_images.hpp"
#include "model/control.hpp"
#include "world/gate.hpp"
#include "world/real/worker_pool.hpp"

namespace cairn {

struct SlotSettings {
    std::uint64_t bytes_max = 0;  // of all slots together; 0: what the file system has
    std::string bytes_max_from;   // for people: where that number comes from
    bool replace_oldest = false;
    std::uint64_t keep_last = 2, keep_every = 0;  // base/config's retention_keeps
    Nanos allocate_wait = 60 * second;
    std::function<Result<std::uint64_t>(const std::string& directory)> room_in = cairn::room_in;  // blocks
    std::function<Result<std::uint64_t>()> available_memory_bytes = [] { return cairn::available_memory_bytes(); };
    std::uint64_t spare_memory_bytes = 0;  // of it, less than which is short
    Nanos clear_wait = second;       // for a slot on its way to being free; then whoever wants one does without it
    Nanos cancel_wait = 2 * second;  // for a version that is given up to end on all nodes
};

class Slots final : public DeadImages::Scratch {
  public:
    using Owner = std::uint64_t;  // a connection; never used again
    using Lease = std::uint64_t;  // a hand-out of a slot; never used again

    Slots(Clock& clock, WorkerPool& workers, Node& node, std::string directory, SlotSettings settings);

    // What scratch held at the start. Images that were committed long ago are not the node's business any more.
    void adopt(const LocalImage& image, bool committed);
    // A file that is here to stay, whatever it holds: no slot gets its name.
    void spare(const std::string& path) { spared_.insert(path); }
    // A file that holds nothing sealed: gone, for the same reason as a lost writer's.
    void discard(const std::string& path);

    // out_of_space names what holds scratch.
    Task<Result<control::Slot>> acquire(Owner owner, control::Acquire request);
    // What the owner will acquire; it is made in the background. Gives what of that is there. Not for a size that no image can have.
    Result<control::Prepared> prepare(Owner owner, const control::Prepare& request);
    // A first slot for each owner that has said what it needs, a second one for each owner of a first image that is sealed on all nodes; not where
    // room is short. For when a version may have changed.
    Task<void> prepare_next();
    // What was made ahead, and not used yet, when memory is short.
    void give_back_ahead();
    void end_ahead();
    // not_found unless the owner holds it.
    Status release(Owner owner, const std::string& path);
    // Tells this hand-out of the slot from every other, also to the same owner; 0 unless the owner has it now.
    Lease lease_of(Owner owner, const std::string& path) const;
    // The slot holds this image from now on. False when it was given back, given up or sealed since that hand-out.
    bool sealed(const LocalImage& image, Lease lease);
    // Gives up a slot whose writer has gone. Nothing when it was sealed after all.
    void discard_unsealed(const std::string& path, Lease lease);
    // The daemon's mapping of the slot, from an earlier image in it; null when there is none.
    BufferPtr mapping(const std::string& path) const;
    bool holds(const VersionKey& key, Rank rank, const std::string& path) const;
    // Drops all pins of the owner and returns the slots it held: look into each whether it was sealed, then adopt or
    // discard it.
    struct Left {
        std::string path;
        Lease lease = 0;
    };
    std::vector<Left> disconnected(Owner owner);

    // Sealed images of a series; each stays until the owner unpins or disconnects.
    control::ImageList pin_images(Owner owner, const std::string& name);
    void unpin(Owner owner);

    bool knows_committed(const VersionKey& key) const;
    // Frees what retention does not keep. Called whenever a version may have changed.
    void apply_retention();
    // Gives back what has been free for so long, but the two slots of each living connection that were used last.
    void trim_idle(Nanos age);
    // At the daemon's end: what is free or still being written gives its memory back. `removers`: where nothing hangs that slots were asked for before.
    Task<void> remove_unsealed(WorkerPool& removers, Nanos deadline);

    std::uint64_t bytes() const noexcept { return bytes_; }
    std::size_t count() const noexcept { return slots_.size(); }
    bool is_clearing() const;  // a slot is on its way from an owner or an image to being free
    // Versions of which images are here, and that are neither committed nor given up.
    std::vector<VersionKey> unfinished();
    // Versions of which images are here, all committed; none when one is not.
    std::vector<VersionKey> all_committed();
    // At the daemon's end: their images give their memory back, but those that somebody reads. How much that was.
    Task<std::uint64_t> remove_versions(std::vector<VersionKey> keys, WorkerPool& removers, Nanos deadline);
    std::vector<DeadImages::Scratch::Held> undecided() override;
    void let_go(const VersionKey& key) override;

  private:
    struct Image {
        VersionKey key;
        std::uint64_t epoch = 0;
        Parent parent;
        Rank rank = 0;
        std::uint32_t ranks = 0;
        std::uint64_t bytes = 0;
        bool committed = false;  // known from persistent, or seen at the node
    };
    enum class State : std::uint8_t { free, busy, owned, image };
    struct Slot {
        std::uint64_t bytes = 0;
        State state = State::free;
        Owner owner = 0;           // now, or last
        Lease lease = 0;           // of the last hand-out
        std::optional<Rank> rank;  // of the last image
        std::optional<VersionKey> begun;  // of which its owner begins to fill an image; the node knows
        bool fresh = true;         // its next owner can not have it mapped
        bool ahead = false;        // being made, or made larger, before it is asked for
        std::shared_ptr<std::atomic<bool>> stop_clearing;  // its pages are being cleared before it is asked for
        std::uint64_t freed = 0;   // by order of becoming free
        std::optional<Nanos> clearing_since;  // its state word is being made invalid
        Nanos freed_at = 0;
        std::uint32_t passed_over = 0;  // captures of its last owner since that did without it
        Image image;
        BufferPtr map;  // kept from image to image; of no use, and given up, when the file grows
        std::set<Owner> pins;
        std::uint64_t pinned = 0;  // how often
    };
    using Place = std::map<std::string, Slot>::iterator;

    static constexpr std::uint64_t slot_step_bytes = 64 << 10;  // sizes are rounded up to this, so that an image may grow a little
    static constexpr std::uint64_t slot_waste_bytes = 16 << 20;  // a slot may be twice as large as asked for, and this
    static bool fits(std::uint64_t slot_bytes, std::uint64_t wanted_bytes, bool take_any) {
        return slot_bytes >= wanted_bytes && (take_any || slot_bytes <= 2 * wanted_bytes + slot_waste_bytes);
    }
    int kinship(const Slot& slot, Owner owner, Rank rank) const;
    Place find_free(Owner owner, const control::Acquire& request, bool take_any);
    Place find_growable(Owner owner, const control::Acquire& request);
    bool will_be_free_for(Owner owner, const control::Acquire& request, bool take_any) const;
    bool has_room(std::uint64_t more_bytes) const;
    Place add_slot(Owner owner, Rank rank);
    struct Expected {  // of an owner's next image
        Rank rank = 0;
        std::uint64_t bytes = 0;
        std::int32_t numa_node = -1;
    };
    struct Wish {  // a slot to be made ahead
        Owner owner = 0;
        Rank rank = 0;
        std::uint64_t bytes = 0;
        std::string smaller;  // which is to be made so large; empty: a new one
    };
    struct Share {  // an owner's slots
        std::size_t count = 0;
        const Slot* image = nullptr;
        std::string free;  // the largest
        std::uint64_t free_bytes = 0;
    };
    std::map<Owner, Share> shares() const;
    std::optional<Wish> find_wish(std::uint64_t room_bytes) const;
    Task<void> make_ahead(Wish wish);
    void claim_free(Owner owner, const Expected& expected);
    bool may_have_ahead(Owner owner) const;
    bool is_being_made_for(Owner owner) const;
    std::int32_t numa_node_of(Owner owner) const;
    std::uint64_t memory_left() const;
    bool has_room_to_spare(std::uint64_t bytes, std::uint64_t room_bytes) const;
    Task<std::uint64_t> room_bytes();
    static void stop_clearing(Slot& slot);
    Task<std::uint64_t> remove_all(std::function<bool(const Slot&)> which, WorkerPool& removers, Nanos deadline);
    struct Removed;
    Task<void> remove_one(std::string path, std::uint64_t bytes, WorkerPool& removers, Nanos deadline, Removed& removed);
    void trim(Owner owner);
    control::Slot hand_out(Place place, Owner owner, const control::Acquire& request);
    void begin(Slot& slot, const control::Acquire& request);
    void leave(Slot& slot);  // it will hold no image of what was begun
    Task<Status> allocate(Place place, std::uint64_t bytes);
    Task<bool> make_room();  // true when a slot became free
    bool unlink_one_free(std::uint64_t wanted_bytes, std::uint64_t room_bytes);
    void make_free(Place place);
    Task<void> clear(std::string path);
    void unlink(Place place);
    std::vector<HeldVersion> held_versions();
    bool drop(const VersionKey& key);
    std::string what_holds();

    Clock& clock_;
    WorkerPool& workers_;
    Node& node_;
    std::string directory_;
    SlotSettings settings_;
    std::map<std::string, Slot> slots_;  // by path
    std::set<std::string> spared_;
    std::set<Owner> live_;
    std::map<Owner, Expected> expected_;
    std::map<Owner, Nanos> not_ahead_;  // until when: a slot could not be made ahead for it, or was given back
    std::size_t preparing_ = 0;  // runs of prepare_next
    std::size_t short_of_room_ = 0;  // who waits for room
    mutable Nanos memory_looked_ = 0;
    mutable std::uint64_t memory_left_ = 0;
    bool ended_ = false;           // no slot is made any more
    bool ended_ahead_ = false;     // nor before it is asked for
    std::size_t allocating_ = 0;   // slot files that are being made or enlarged
    std::uint64_t bytes_ = 0;
    std::uint64_t next_number_ = 0;
    std::uint64_t last_freed_ = 0;
    struct RoomLook {
        explicit RoomLook(Clock& clock) : over(clock) {}
        Event over;
        bool is_over = false;  // it came back, or was given up
        std::uint64_t bytes = 0;
    };
    std::shared_ptr<RoomLook> room_look_;             // the last one
    std::weak_ptr<std::uint64_t> room_look_running_;  // while it is under way, given up or not
    Lease last_lease_ = 0;
    Event freed_;
    Gate gate_;  // last: its coroutines refer to all of the above
};

}  // namespace cairn
