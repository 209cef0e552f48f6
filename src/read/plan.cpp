// Ranks whose slot is open are read there; all others together from the parts.
#include "read/plan.hpp"

#include <algorithm>
#include <set>

namespace cairn {

std::uint64_t ReadPlan::bytes() const {
    std::uint64_t bytes = 0;
    for (const SlotRead& read : slots) bytes += read.run.length;
    for (const PartRead& read : parts) bytes += read.length;
    return bytes;
}

Result<ReadPlan> plan_reads(const VersionCopies& copies, const std::vector<WantedImage>& wanted, std::uint64_t buffer_bytes) {
    ReadPlan plan;
    std::vector<WantedImage> of_parts;
    for (const WantedImage& each : wanted) {
        const auto slot = copies.slots.find(each.rank);
        if (slot != copies.slots.end()) {
            for (const ImageRange& run : plan_local_reads(slot->second, each.ranges, buffer_bytes)) plan.slots.push_back({each.rank, run});
        } else if (copies.parts) {
            of_parts.push_back(each);
        } else {
            TRY(copies.image(each.rank).status());
        }
    }
    if (of_parts.empty()) return plan;
    TRY_ASSIGN(plan.parts, plan_part_reads(*copies.parts, of_parts, buffer_bytes));
    return plan;
}

namespace {

// Each for one piece of the image, since those of one run may lie far apart there; of a run that is stored as it is no more than that piece.
std::vector<PartRead> one_by_one(const OpenVersion& version, const std::vector<PartRead>& reads) {
    std::vector<PartRead> single;
    for (const PartRead& read : reads) {
        const StoredRun& run = version.footers[read.footer].runs[read.run];
        for (const std::uint32_t index : read.pieces) {
            PartRead& one = single.emplace_back(read);
            one.pieces = {index};
            if (run.codec != 0 || run.pieces.size() == 1 || read.length < run.stored_bytes) continue;
            one.offset = run.pieces[index].at;
            one.length = run.pieces[index].length;
        }
    }
    return single;
}

// An encoded run is one read of a piece of the plan, and the pieces behind that one may want it again.
void join_encoded(const OpenVersion& version, std::vector<PlanPiece>& pieces) {
    const auto is_encoded = [&](const PartRead& read) { return version.footers[read.footer].runs[read.run].codec != 0; };
    std::set<std::pair<std::size_t, std::size_t>> later;
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
        std::vector<PartRead> joined;
        for (PartRead& read : piece->plan.parts) {  // in the order of the parts: those of one run follow each other
            const bool goes_on = !joined.empty() && is_encoded(read) && joined.back().footer == read.footer && joined.back().run == read.run;
            if (goes_on) joined.back().pieces.push_back(read.pieces.front());
            else joined.push_back(std::move(read));
        }
        for (PartRead& read : joined)
            if (is_encoded(read)) read.is_wanted_again = !later.emplace(read.footer, read.run).second;
        piece->plan.parts = std::move(joined);
    }
}

}  // namespace

std::vector<PlanPiece> in_image_order(const VersionCopies& copies, ReadPlan plan, std::uint64_t piece_bytes) {
    const auto image_run = [&](const PartRead& read) { return image_run_of(*copies.parts, read, read.pieces.front()); };
    const auto place = [&](const PartRead& read) { return std::pair(read.footer, copies.parts->footers[read.footer].runs[read.run].part_offset + read.offset); };
    std::vector<PlanPiece> pieces;
    const auto piece_of = [&](const ImageRange& run) -> ReadPlan& {
        const std::uint64_t end = run.offset + run.length;
        if (pieces.empty() || end - pieces.back().range.offset > piece_bytes) pieces.push_back({{run.offset, 0}, {}});
        pieces.back().range.length = end - pieces.back().range.offset;
        return pieces.back().plan;
    };
    for (const SlotRead& read : plan.slots) piece_of(read.run).slots.push_back(read);
    if (plan.parts.empty()) return pieces;
    std::vector<PartRead> reads = one_by_one(*copies.parts, plan.parts);
    std::sort(reads.begin(), reads.end(), [&](const PartRead& a, const PartRead& b) { return image_run(a).offset < image_run(b).offset; });
    for (PartRead& read : reads) piece_of(image_run(read)).parts.push_back(std::move(read));
    for (PlanPiece& piece : pieces)
        std::sort(piece.plan.parts.begin(), piece.plan.parts.end(), [&](const PartRead& a, const PartRead& b) { return place(a) < place(b); });
    join_encoded(*copies.parts, pieces);
    return pieces;
}

namespace {

Task<Status> read_all_planned(World& world, Layout layout, const VersionCopies& copies, ReadPlan plan, Receiving to, RestoreSettings settings,
                              EncodedRuns* encoded) {
    for (std::size_t i = 0; i < plan.slots.size();) {
        const Rank rank = plan.slots[i].rank;
        std::vector<ImageRange> runs;
        for (; i < plan.slots.size() && plan.slots[i].rank == rank; ++i) runs.push_back(plan.slots[i].run);
        Status status = co_await read_local(world, copies.slots.at(rank), std::move(runs), to, settings.io_wait);
        if (!status.ok()) co_return status;
    }
    if (plan.parts.empty()) co_return Status();
    Status status = co_await read_parts(world, layout, *copies.parts, std::move(plan.parts), std::move(to), settings, encoded);
    co_return status;
}

}  // namespace

Task<Status> read_planned(World& world, Layout layout, const VersionCopies& copies, ReadPlan plan, HandOut& out, RestoreSettings settings, EncodedRuns* encoded) {
    Status status = co_await read_all_planned(world, layout, copies, std::move(plan), out.receiving(), settings, encoded);
    if (!status.ok()) co_return status;
    co_return out.check_complete();
}

}  // namespace cairn
