// Which runs are shared, every rank finds out by itself: all who have pieces of a run have the footer of its part. Where it is the n-th of its part that ranks of this node share, n says its shelf, so that
// runs that follow each other have different ones.
#include "copies/shared_reads.hpp"

#include <algorithm>

#include "copies/reading.hpp"
#include "copies/shared_bases.hpp"

namespace cairn {

namespace {

constexpr std::size_t apart = 23;  // shelves that the first runs of two parts lie apart

// Only so many have a name of their own (SharedRuns::Which).
constexpr std::uint32_t parts_named = 1u << 24, bases_named = 1u << 8;

}  // namespace

bool is_read_whole(const StoredRun& run, const PartRead& read) { return run.codec != 0 || (run.pieces.size() > 1 && read.length == run.stored_bytes); }

Shelves shelves_of(const SharedRuns& node, bool has_bases, std::uint32_t base) {
    const std::size_t of_bases = has_bases ? node.shelves() / 2 : 0, of_version = node.shelves() - of_bases;
    return base == 0 ? Shelves{0, of_version} : Shelves{of_version, of_bases};
}

SharedReads::SharedReads(ReadSource& of, const std::vector<PartRead>& reads)
    : of_(of), shared_(of.encoded.node()), reads_(reads), turns_(reads), is_taken_(reads.size()), is_of_turns_(reads.size()) {
    if (shared_) find_shared();
    for (const PartRead& read : reads) is_last_ &= !read.is_wanted_again;
}

std::vector<std::optional<SharedRuns::Shared>> runs_shared(const SharedRuns& node, const OpenVersion& version, std::size_t footer_at, Shelves shelves, std::uint32_t base) {
    const Footer& footer = version.footers[footer_at];
    const std::vector<Rank>& ranks = node.ranks();
    std::vector<std::optional<SharedRuns::Shared>> found(footer.runs.size());
    if (shelves.count == 0 || footer.part >= parts_named || base >= bases_named) return found;
    if (version.manifest.parts[version.parts[footer_at]].origin != 0) return found;  // a part of an older version: whose images it has there is another question
    std::size_t count = 0;
    for (std::size_t i = 0; i < footer.runs.size(); ++i) {
        const StoredRun& run = footer.runs[i];
        if (run.pieces.size() < 2 || raw_bytes(run) > SharedRuns::shelf_bytes) continue;
        std::set<Rank> whose;
        for (const StoredPiece& piece : run.pieces)
            if (std::binary_search(ranks.begin(), ranks.end(), piece.rank)) whose.insert(piece.rank);
        if (whose.size() < 2) continue;
        const std::size_t shelf = shelves.first + (footer.part * apart + count++) % shelves.count;
        found[i] = SharedRuns::Shared{{footer.part, static_cast<std::uint32_t>(i), base}, shelf, {whose.begin(), whose.end()}};
    }
    return found;
}

void SharedReads::find_shared() {
    std::map<std::size_t, std::vector<std::optional<SharedRuns::Shared>>> footers;
    const Shelves shelves = shelves_of(*shared_, !of_.version.manifest.bases.empty(), 0);
    for (std::size_t i = 0; i < reads_.size(); ++i) {
        const PartRead& read = reads_[i];
        if (!is_read_whole(run_of(of_.version, read), read)) continue;
        auto known = footers.find(read.footer);
        if (known == footers.end()) known = footers.emplace(read.footer, runs_shared(*shared_, of_.version, read.footer, shelves, 0)).first;
        const std::optional<SharedRuns::Shared>& run = known->second[read.run];
        if (!run) continue;
        reads_of_.emplace(run->which, i);
        runs_.emplace(i, *run);
    }
}

Task<std::optional<SharedReads::Next>> SharedReads::next(const Status& failure) {
    constexpr Nanos longest = 8 * millisecond;
    for (Nanos pause = millisecond / 4; failure.ok(); pause = std::min(2 * pause, longest)) {
        if (of_.shared) co_await of_.shared->take_ready();
        std::optional<Next> found = try_next();
        if (found || is_empty()) co_return found;
        if (shared_) shared_->watch();
        co_await of_.world.clock.sleep(pause);
    }
    co_return std::nullopt;
}

std::optional<SharedReads::Next> SharedReads::try_next() {
    if (!runs_.empty()) {
        if (const std::optional<Next> ready = next_waiting()) return ready;
        if (const std::optional<Next> passed = next_passed()) return passed;
    }
    // Behind so many that wait for a shelf the next ones would wait, too.
    while (!shared_ || passed_.size() < shared_->shelves()) {
        const std::optional<std::size_t> index = turns_.take();
        if (!index) return std::nullopt;
        is_of_turns_[*index] = true;
        if (is_taken_[*index]) {  // before its turn
            ended({*index});
            continue;
        }
        if (const std::optional<Next> next = ask(*index)) return next;
        turns_.ended(*index);
        is_of_turns_[*index] = false;
        passed_.push_back(*index);
    }
    return std::nullopt;
}

std::optional<SharedReads::Next> SharedReads::next_waiting() {
    for (std::size_t shelf = 0; shelf < shared_->shelves(); ++shelf) {
        const std::optional<SharedRuns::Which> which = shared_->waiting(shelf);
        if (!which || which->base != 0 || being_read_.count(*which) != 0) continue;
        const auto read = reads_of_.find(*which);
        if (read != reads_of_.end() && !is_taken_[read->second]) {
            if (const std::optional<Next> next = ask(read->second)) return next;
        } else if (is_last_) {
            shared_->pass(*which, shelf);  // it has it, or needs nothing of it
        }
    }
    return std::nullopt;
}

std::optional<SharedReads::Next> SharedReads::next_passed() {
    std::erase_if(passed_, [&](std::size_t index) { return is_taken_[index]; });
    for (const std::size_t index : passed_)
        if (const std::optional<Next> next = ask(index)) {
            passed_.erase(std::find(passed_.begin(), passed_.end(), index));
            return next;
        }
    return std::nullopt;
}

// Nothing: it is to wait.
std::optional<SharedReads::Next> SharedReads::ask(std::size_t index) {
    const auto run = runs_.find(index);
    if (run == runs_.end()) return take(index, Turn::alone);
    if (of_.encoded.keeps({reads_[index].footer, reads_[index].run})) return take(index, Turn::alone);
    Turn turn = shared_->turn(run->second);
    // Who reads on afterwards has not come yet to what others may wait for: it waits for none of them.
    if (turn == Turn::occupied && !is_last_) turn = Turn::alone;
    if (turn == Turn::claimed || turn == Turn::occupied) return std::nullopt;
    return take(index, turn);
}

SharedReads::Next SharedReads::take(std::size_t index, Turn turn) {
    is_taken_[index] = true;
    const auto run = runs_.find(index);
    if (run == runs_.end()) return {index, turn, nullptr};
    being_read_.insert(run->second.which);
    return {index, turn, &run->second};
}

void SharedReads::ended(const Next& next) {
    if (next.run) {
        being_read_.erase(next.run->which);
        if (next.turn != Turn::mine) shared_->pass(next.run->which, next.run->shelf);
    }
    if (is_of_turns_[next.index]) turns_.ended(next.index);
    is_of_turns_[next.index] = false;
}

}  // namespace cairn
