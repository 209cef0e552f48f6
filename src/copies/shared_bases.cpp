// The needs of all runs of the version are known first; then readers ask, one run of the base after the other. All of it is on one event loop, so what is busy says who does what.
#include "copies/shared_bases.hpp"

#include <algorithm>

#include "copies/run_pieces.hpp"
#include "copies/shared_reads.hpp"

namespace cairn {

namespace {

SharedRuns::Which which_read(const ReadSource& base, const PartRead& read) { return {base.version.footers[read.footer].part, static_cast<std::uint32_t>(read.run), base.base}; }

// What this rank takes of it.
RunPieces pieces_of(const SharedBases::Run& run) { return {*run.stored, {run.pieces.begin(), run.pieces.end()}, false}; }

}  // namespace

SharedBases::Run& SharedBases::run_of_read(const ReadSource& base, const PartRead& read) {
    const SharedRuns::Which which = which_read(base, read);
    const auto known = runs_.find(which);
    if (known != runs_.end()) return known->second;
    auto shared = shared_.find({base.base, read.footer});
    if (shared == shared_.end()) shared = shared_.emplace(std::pair(base.base, read.footer), runs_shared(node_, base.version, read.footer, shelves_of(node_, true, base.base), base.base)).first;
    const std::optional<SharedRuns::Shared>& of_node = shared->second[read.run];
    return runs_.emplace(which, Run{of_node ? *of_node : SharedRuns::Shared{which, 0, {}}, {read.footer, read.run, base.base}, &run_of(base.version, read)}).first->second;
}

SharedBases::Run* SharedBases::find(const ReadSource& base, const PartRead& read) {
    const auto found = runs_.find(which_read(base, read));
    return found == runs_.end() || found->second.shared.ranks.empty() ? nullptr : &found->second;
}

void SharedBases::need(Dependent run, const ReadSource& base, const std::vector<PartRead>& reads) {
    for (const PartRead& read : reads) {
        if (!is_read_whole(run_of(base.version, read), read)) continue;
        Run& needed = run_of_read(base, read);
        needed.pieces.insert(read.pieces.begin(), read.pieces.end());
        ++needed.wanted;
        needs_[run].push_back(&needed);
    }
}

void SharedBases::has_been_read(Dependent run) {
    const auto needs = needs_.find(run);
    if (needs == needs_.end()) return;
    for (Run* const needed : needs->second) {
        if (--needed->wanted != 0) continue;
        memory_.drop(needed->which);
        if (!needed->shared.ranks.empty()) node_.pass(needed->shared.which, needed->shared.shelf);
    }
    needs_.erase(needs);
}

Task<std::optional<SharedBases::Next>> SharedBases::next(const ReadSource& base, const std::vector<PartRead>& reads, const Status& failure) {
    constexpr Nanos longest = 8 * millisecond;
    for (Nanos pause = millisecond / 4; failure.ok(); pause = std::min(2 * pause, longest)) {
        const bool has_room = co_await take_ready();
        for (std::size_t i = 0; i < reads.size(); ++i)
            if (std::optional<Next> next = ask(i, find(base, reads[i]), has_room)) co_return next;
        node_.watch();
        co_await world_.clock.sleep(pause);
    }
    co_return std::nullopt;
}

// Nothing: it is to wait.
std::optional<SharedBases::Next> SharedBases::ask(std::size_t index, Run* run, bool has_room) {
    using Turn = SharedRuns::Turn;
    if (!run) return Next{index};
    if (run->is_busy) return std::nullopt;
    Turn turn = run->is_alone || memory_.keeps(run->which) ? Turn::alone : node_.turn(run->shared);
    if (turn == Turn::occupied && !has_room) turn = Turn::alone;
    if (turn == Turn::claimed || turn == Turn::occupied) return std::nullopt;
    run->is_busy = true;
    return Next{index, turn, run};
}

void SharedBases::ended(const Next& next) {
    next.run->is_busy = false;
    if (next.turn == SharedRuns::Turn::failed) node_.pass(next.run->shared.which, next.run->shared.shelf);
}

Task<bool> SharedBases::take_ready() {
    bool has_room = true;
    for (std::size_t shelf = 0; shelf < node_.shelves(); ++shelf) {
        const std::optional<SharedRuns::Which> which = node_.waiting(shelf);
        if (!which || which->base == 0) continue;
        const auto found = runs_.find(*which);
        if (found == runs_.end() || found->second.wanted == 0 || memory_.keeps(found->second.which)) {
            node_.pass(*which, shelf);
            continue;
        }
        Run& run = found->second;
        if (run.is_busy) continue;
        if (!memory_.has_room(round_up(pieces_of(run).bytes, 4096))) {
            has_room = false;
            continue;
        }
        run.is_busy = true;
        co_await take(run);
        run.is_busy = false;
    }
    co_return has_room;
}

Task<void> SharedBases::take(Run& run) {
    const RunPieces pieces = pieces_of(run);
    Result<EncodedRuns::Room> room = co_await memory_.take(round_up(pieces.bytes, 4096), patience_);
    Status taken = room.status();
    if (taken.ok()) {
        Result<Slice> memory = memory_.allocate(std::move(room).value(), pieces.bytes);
        taken = memory.status();
        if (taken.ok()) taken = co_await take_pieces(node_, run.shared, pieces, *memory);
        if (taken.ok()) memory_.keep(run.which, {std::move(memory).value(), pieces.places});
    }
    node_.counts.taken += taken.ok() ? 1 : 0;
    node_.counts.taken_of_bases += taken.ok() ? 1 : 0;
    run.is_alone = !taken.ok();
    node_.pass(run.shared.which, run.shared.shelf);
}

}  // namespace cairn
