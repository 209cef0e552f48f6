// The table, in words of 64 bits: how many have opened it; a bit for each rank that is done; then by shelf its word (state, owner, and a number that no other word of the shelf had), the run that is in it,
// and a bit for each rank that has not taken it yet.
#include "copies/shared_runs.hpp"

#include <algorithm>
#include <atomic>

#include "world/gate.hpp"

namespace cairn {

namespace {

enum class State : std::uint8_t {
    free,
    naming,   // claimed, and which run it is does not stand there yet
    claimed,
    ready,
    failed,
};

constexpr unsigned state_bits = 3, owner_bits = 29;

State state_of(std::uint64_t word) { return static_cast<State>(word & ((1u << state_bits) - 1)); }
std::uint64_t with_state(std::uint64_t word, State state) { return (word >> state_bits << state_bits) | static_cast<std::uint64_t>(state); }
std::uint64_t claim_after(std::uint64_t word, std::size_t owner) {
    return ((word >> (state_bits + owner_bits)) + 1) << (state_bits + owner_bits) | static_cast<std::uint64_t>(owner) << state_bits | static_cast<std::uint64_t>(State::naming);
}
bool is_claimed_by(std::uint64_t word, std::size_t owner) {
    const bool is_claim = state_of(word) == State::naming || state_of(word) == State::claimed;
    return is_claim && (word >> state_bits & ((1u << owner_bits) - 1)) == owner;
}

// A byte, three, and four.
std::uint64_t key_of(const SharedRuns::Which& which) { return std::uint64_t{which.base} << 56 | std::uint64_t{which.part} << 32 | which.run; }
SharedRuns::Which which_of(std::uint64_t key) { return {static_cast<std::uint32_t>(key >> 32 & 0xffffff), static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 56)}; }

}  // namespace

class SharedRuns::Table {
  public:
    using Word = std::atomic_ref<std::uint64_t>;
    static_assert(Word::is_always_lock_free);

    Table(const BufferPtr& map, std::size_t ranks) : words_(reinterpret_cast<std::uint64_t*>(map->data())), sets_((ranks + 63) / 64) {}
    static std::uint64_t bytes(std::size_t ranks, std::size_t shelves) { return 8 * (1 + (ranks + 63) / 64 + shelves * (2 + (ranks + 63) / 64)); }

    Word opened() const { return Word(words_[0]); }
    Word word(std::size_t shelf) const { return Word(shelf_at(shelf)[0]); }
    Word key(std::size_t shelf) const { return Word(shelf_at(shelf)[1]); }
    std::size_t sets() const { return sets_; }  // words that hold a bit for each rank
    Word done(std::size_t set) const { return Word(words_[1 + set]); }
    Word waiting(std::size_t shelf, std::size_t set) const { return Word(shelf_at(shelf)[2 + set]); }

    bool waits_for(std::size_t shelf, std::size_t rank) const { return (waiting(shelf, rank / 64).load() & bit(rank)) != 0; }
    bool is_idle(std::size_t shelf) const {
        for (std::size_t set = 0; set < sets_; ++set)
            if ((waiting(shelf, set).load() & ~done(set).load()) != 0) return false;
        return true;
    }
    static std::uint64_t bit(std::size_t rank) { return std::uint64_t{1} << (rank % 64); }

  private:
    std::uint64_t* shelf_at(std::size_t shelf) const { return words_ + 1 + sets_ + shelf * (2 + sets_); }
    std::uint64_t* words_;
    std::size_t sets_;
};

SharedRuns::SharedRuns(World& world, SharedPlace place, Nanos patience) : world_(world), place_(std::move(place)), patience_(patience) {
    const std::vector<Rank>& ranks = place_.ranks;
    self_ = static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), place_.self) - ranks.begin());
    shelves_ = place_.shelves != 0 ? place_.shelves : std::min(shelves_max, 4 * ranks.size());
    watched_.resize(shelves_);
}

Task<Result<std::unique_ptr<SharedRuns>>> SharedRuns::open(World& world, SharedPlace place, Nanos patience, Nanos deadline) {
    std::unique_ptr<SharedRuns> shared(new SharedRuns(world, std::move(place), patience));
    Status opened = co_await shared->open_files(deadline);
    if (!opened.ok()) co_return std::move(opened).within("sharing runs with the other ranks of this node");
    co_return shared;
}

Task<Status> SharedRuns::open_files(Nanos deadline) {
    const std::string path = place_.path("table");
    Result<BufferPtr> map = co_await world_.storage.map(path, true, deadline);
    if (map.code() == Code::not_found) map = co_await make_table(deadline);
    if (!map.ok()) co_return std::move(map).status();
    if ((*map)->data() == nullptr || (*map)->size() < Table::bytes(place_.ranks.size(), shelves_)) co_return corrupt(path + ": is no table of this many ranks");
    Result<FilePtr> runs = co_await open_runs(deadline);
    if (!runs.ok()) co_return std::move(runs).status();
    map_ = std::move(map).value();
    runs_ = std::move(runs).value();
    const Table table(map_, place_.ranks.size());
    if (table.opened().fetch_add(1) + 1 < place_.ranks.size()) co_return Status();
    // All are here, and nobody needs the names any more: what a job that is killed leaves is gone with its processes.
    for (const char* const what : {"table", "runs"}) {
        const Status removed = co_await world_.storage.remove(place_.path(what), deadline);
        static_cast<void>(removed);
    }
    co_return Status();
}

// Whole or not at all, for the others. Written, so that its space is there before it is mapped.
Task<Result<BufferPtr>> SharedRuns::make_table(Nanos deadline) {
    const Status made = co_await world_.storage.make_directory(place_.directory, 0700, deadline);
    if (!made.ok() && made.code() != Code::already_exists) co_return made;
    const std::string path = place_.path("table"), fresh = place_.path("new-") + world_.random.id().hex();
    OpenOptions options;
    options.mode = OpenMode::create;
    options.permissions = 0600;
    Result<FilePtr> file = co_await world_.storage.open(fresh, options, deadline);
    if (!file.ok()) co_return std::move(file).status();
    Slice zeros = Slice::of(Bytes(Table::bytes(place_.ranks.size(), shelves_)));
    Status written = co_await write_all(world_.storage, *file, 0, zeros, deadline);
    if (written.ok()) written = co_await world_.storage.publish(fresh, path, deadline);
    const bool is_first = written.ok();
    const Status removed = co_await world_.storage.remove(fresh, deadline);
    static_cast<void>(removed);
    if (!written.ok() && written.code() != Code::already_exists) co_return written;
    if (is_first) co_await remove_older(deadline);
    Result<BufferPtr> map = co_await world_.storage.map(path, true, deadline);
    co_return map;
}

// Of restarts of the series that are over: who was killed before all had come has left them.
Task<void> SharedRuns::remove_older(Nanos deadline) {
    Result<std::vector<DirectoryEntry>> entries = co_await world_.storage.list(place_.directory, deadline);
    if (!entries.ok()) co_return;
    const std::string series = place_.series + "-", own = series + place_.name + ".";
    for (const DirectoryEntry& entry : *entries) {
        if (!entry.name.starts_with(series) || entry.name.starts_with(own)) continue;
        const std::string path = place_.directory + "/" + entry.name;
        const Status removed = co_await world_.storage.remove(path, deadline);
        static_cast<void>(removed);
    }
}

Task<Result<FilePtr>> SharedRuns::open_runs(Nanos deadline) {
    const std::string path = place_.path("runs");
    OpenOptions options;
    options.mode = OpenMode::create;
    options.permissions = 0600;
    Result<FilePtr> file = co_await world_.storage.open(path, options, deadline);
    if (file.code() == Code::already_exists) {
        options.mode = OpenMode::write;
        file = co_await world_.storage.open(path, options, deadline);
    }
    co_return file;
}

void SharedRuns::leave() {
    const Table table(map_, place_.ranks.size());
    for (std::size_t shelf = 0; shelf < shelves_; ++shelf)
        if (const std::uint64_t word = table.word(shelf).load(); is_claimed_by(word, self_)) table.word(shelf).store(with_state(word, State::failed));
    table.done(self_ / 64).fetch_or(Table::bit(self_));
}

SharedRuns::Turn SharedRuns::turn(const Shared& run) {
    const Table table(map_, place_.ranks.size());
    const std::uint64_t word = table.word(run.shelf).load();
    const State state = state_of(word);
    // The word says whether the run that stands there is still the one that was looked at.
    const bool is_it = state != State::naming && table.key(run.shelf).load() == key_of(run.which) && table.word(run.shelf).load() == word;
    if (state == State::naming || state == State::claimed) {
        Watched& watched = watched_[run.shelf];
        if (watched.given_up != word && stands_still(run.shelf, word)) watched.given_up = word;
        if (watched.given_up == word) return Turn::alone;
        return is_it || state == State::naming ? Turn::claimed : Turn::occupied;
    }
    if (state != State::free && is_it) {
        if (state == State::ready) return Turn::ready;
        if (table.waits_for(run.shelf, self_)) return Turn::failed;
    }
    if (state != State::free && !table.is_idle(run.shelf)) {
        if (!stands_still(run.shelf, word)) return Turn::occupied;
        for (std::size_t set = 0; set < table.sets(); ++set) table.done(set).fetch_or(table.waiting(run.shelf, set).load());
    }
    if (has_no_room_) return Turn::alone;
    return claim(run, word) ? Turn::mine : Turn::claimed;
}

bool SharedRuns::claim(const Shared& run, std::uint64_t word) {
    const Table table(map_, place_.ranks.size());
    const std::uint64_t mine = claim_after(word, self_);
    if (!table.word(run.shelf).compare_exchange_strong(word, mine)) return false;
    std::vector<std::uint64_t> waiting(table.sets());
    for (const Rank rank : run.ranks) {
        const auto at = static_cast<std::size_t>(std::lower_bound(place_.ranks.begin(), place_.ranks.end(), rank) - place_.ranks.begin());
        if (at != self_) waiting[at / 64] |= Table::bit(at);
    }
    table.key(run.shelf).store(key_of(run.which));
    for (std::size_t set = 0; set < table.sets(); ++set) table.waiting(run.shelf, set).store(waiting[set]);
    table.word(run.shelf).store(with_state(mine, State::claimed));
    return true;
}

// Whether nobody has done anything with the shelf for so long.
bool SharedRuns::stands_still(std::size_t shelf, std::uint64_t word) {
    const Table table(map_, place_.ranks.size());
    std::uint64_t left = 0;
    for (std::size_t set = 0; set < table.sets(); ++set) left += static_cast<std::uint64_t>(__builtin_popcountll(table.waiting(shelf, set).load()));
    Watched& watched = watched_[shelf];
    if (watched.word != word || watched.left != left || watched.since == 0) {
        watched.word = word;
        watched.left = left;
        watched.since = world_.clock.now() + 1;  // never 0
    }
    return world_.clock.now() - watched.since >= patience_;
}

void SharedRuns::watch() {
    const Table table(map_, place_.ranks.size());
    for (std::size_t shelf = 0; shelf < shelves_; ++shelf)
        if (const std::uint64_t word = table.word(shelf).load(); state_of(word) != State::free) static_cast<void>(stands_still(shelf, word));
}

Task<void> SharedRuns::give(const Shared& run, Slice raw) {
    const std::uint64_t offset = run.shelf * shelf_bytes;
    const Nanos deadline = world_.clock.in(patience_);
    const Status written = co_await write_all(world_.storage, runs_, offset, std::move(raw), deadline);
    if (written.code() == Code::out_of_space) has_no_room_ = true;
    if (!written.ok()) {
        fail(run);
        co_return;
    }
    const Table table(map_, place_.ranks.size());
    table.word(run.shelf).store(with_state(table.word(run.shelf).load(), State::ready));
    ++counts.made;
}

void SharedRuns::fail(const Shared& run) {
    const Table table(map_, place_.ranks.size());
    const std::uint64_t word = table.word(run.shelf).load();
    if (is_claimed_by(word, self_) && table.key(run.shelf).load() == key_of(run.which)) table.word(run.shelf).store(with_state(word, State::failed));
}

Task<Status> SharedRuns::take(const Shared& run, std::uint64_t offset, Slice into) {
    const Nanos deadline = world_.clock.in(patience_);
    Status status = co_await read_all(world_.storage, runs_, run.shelf * shelf_bytes + offset, std::move(into), deadline);
    if (!status.ok()) co_return status;
    const Table table(map_, place_.ranks.size());
    const std::uint64_t word = table.word(run.shelf).load();
    if (state_of(word) != State::ready || table.key(run.shelf).load() != key_of(run.which)) co_return unavailable("its shelf was given to another run");
    co_return Status();
}

void SharedRuns::pass(const Which& which, std::size_t shelf) {
    if (waiting(shelf) != which) return;
    const Table table(map_, place_.ranks.size());
    table.waiting(shelf, self_ / 64).fetch_and(~Table::bit(self_));
}

std::optional<SharedRuns::Which> SharedRuns::waiting(std::size_t shelf) const {
    const Table table(map_, place_.ranks.size());
    const std::uint64_t word = table.word(shelf).load();
    if ((state_of(word) != State::ready && state_of(word) != State::failed) || !table.waits_for(shelf, self_)) return std::nullopt;
    const std::uint64_t key = table.key(shelf).load();
    if (table.word(shelf).load() != word) return std::nullopt;
    return which_of(key);
}

}  // namespace cairn
