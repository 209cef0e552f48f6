#include "cli/extract_output.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <ostream>

#include "cli/output_file.hpp"
#include "read/plan.hpp"

namespace cairn::cli {

namespace {

std::string what_of(const Wanted& one) { return one.region.empty() ? "the image" : "region " + one.region; }

constexpr std::size_t open_of_trees = 256;  // files, of all trees together

// As many as this user may have.
void allow_descriptors() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
    files.rlim_cur = files.rlim_max;
    static_cast<void>(::setrlimit(RLIMIT_NOFILE, &files));
}

class Extraction {
  public:
    // Its trees are used up.
    Extraction(Console& console, Place& place, const VersionCopies& copies, Output& output, bool replace, ReadCost& cost)
        : console_(console), place_(place), copies_(copies), output_(output), wanted_(output.runs), replace_(replace), cost_(cost) {}

    Status run() {
        std::uint64_t total_bytes = 0;
        for (const Wanted& one : wanted_) total_bytes += one.bytes();
        Progress progress(console_, "extract", total_bytes);
        progress_ = &progress;
        return !wanted_.empty() && wanted_.front().path == "-" ? to_stream(wanted_.front()) : to_files();
    }

  private:
    // All of them in one pass over the parts, since what a few files have of them lies in one place, and all others would wait. Where it fails none of them appears.
    Status to_files() {
        OutputFiles files(replace_);
        std::vector<std::unique_ptr<TreeOutput>> trees;
        allow_descriptors();  // each tree has two, whatever it has open
        const std::size_t open_each = std::max<std::size_t>(4, open_of_trees / std::max<std::size_t>(1, output_.trees.size()));
        for (Tree& tree : output_.trees) {
            TRY_ASSIGN(trees.emplace_back(), TreeOutput::create(output_.folder, std::move(tree), replace_, open_each));
        }
        HandOut out;
        std::vector<const Wanted*> of_files;
        for (const Wanted& one : wanted_) {
            TreeOutput* const tree = one.tree == no_tree ? nullptr : trees[one.tree].get();
            if (!tree) TRY(files.add(one.path));
            if (!tree) of_files.push_back(&one);
            const std::size_t i = of_files.size() - 1;
            if (one.slice) TRY(add_slice(out, one, [this, &files, i](std::uint64_t at, ByteView data) { return files.write_at(i, at, data); }));
            else out.add(one.rank, one.range, what_of(one), [this, &files, &one, tree, i](std::uint64_t at, const Slice& data) {
                progress_->set(done_bytes_ += data.length);
                return tree ? tree->write_at(one.entry, at, data.bytes()) : files.write_at(i, at, data.bytes());
            });
        }
        if (!wanted_.empty()) {
            TRY_ASSIGN(ReadPlan plan, plan_reads(copies_, out.wanted(), place_.restore().buffer_bytes));
            note_cost(plan);
            TRY(read_by_plan(place_, copies_, std::move(plan), out));
        }
        for (std::size_t i = 0; i < of_files.size(); ++i) TRY(files.commit(i, of_files[i]->bytes()));
        for (const auto& tree : trees) {
            TRY(tree->commit());
            for (const std::string& told : tree->not_restored()) console_.err << "cairn extract: note: " << for_terminal(told) << "\n";
        }
        return {};
    }

    // Of no more runs than this many has anybody to know: where blocks are so many, some are read for nothing.
    static constexpr std::uint64_t runs_max = 1 << 18;

    // In the array. An image that is not all there is told before its size is believed.
    Result<std::vector<ImageRange>> runs_of(const Wanted& one, const ArraySlice& slice) {
        if (slice.bytes() > 0) TRY(plan_reads(copies_, {{one.rank, {{one.range.offset, 1}}}}, place_.restore().buffer_bytes).status());
        return slice.ranges(std::max(copies_.block_bytes(), one.range.length / runs_max));
    }

    // A run of the array may hold bytes of many rows of the slice: they are put together, and are one write.
    Status add_slice(HandOut& out, const Wanted& one, std::function<Status(std::uint64_t at, ByteView data)> write) {
        TRY_ASSIGN(const std::vector<ImageRange> runs, runs_of(one, *one.slice));
        for (const ImageRange& run : runs)
            out.add(one.rank, {one.range.offset + run.offset, run.length}, what_of(one), [this, &one, run, write](std::uint64_t at, const Slice& data) {
                const std::uint64_t begin = one.slice->before(run.offset + at);
                Bytes rows(one.slice->before(run.offset + at + data.length) - begin);
                one.slice->cut(run.offset + at, data.bytes(), rows.data());
                progress_->set(done_bytes_ += rows.size());
                return write(begin, rows);
            });
        return {};
    }

    void note_cost(const ReadPlan& plan) {
        if (copies_.parts) cost_.add(cost_of(*copies_.parts, plan.parts));
    }

    // Runs arrive in the order of the parts, a stream wants the order of the image: so one piece of it after the other. What a piece has of the slice stands together in the stream.
    Status to_stream(const Wanted& one) {
        const ArraySlice slice = one.slice ? *one.slice : ArraySlice::whole(one.range.length);
        const std::uint64_t block_bytes = copies_.block_bytes(), buffer_bytes = place_.restore().buffer_bytes;
        const std::uint64_t window_bytes = std::max(block_bytes, buffer_bytes / block_bytes * block_bytes);
        TRY_ASSIGN(std::vector<ImageRange> runs, runs_of(one, slice));
        if (runs.empty()) return {};
        for (ImageRange& run : runs) run.offset += one.range.offset;
        TRY_ASSIGN(ReadPlan plan, plan_reads(copies_, {{one.rank, runs}}, buffer_bytes));
        EncodedRuns encoded(place_.world(), place_.restore().encoded_bytes);
        auto run = runs.begin();
        std::uint64_t written = 0;
        for (PlanPiece& piece : in_image_order(copies_, std::move(plan), window_bytes)) {
            const std::uint64_t end = piece.range.offset + piece.range.length;
            Bytes window;
            HandOut out;
            std::uint64_t wanted_end = 0;
            for (; run != runs.end() && run->offset < end; ++run) {
                const std::uint64_t length = std::min(end - run->offset, run->length), in_array = run->offset - one.range.offset;
                out.add(one.rank, {run->offset, length}, what_of(one), [&, in_array](std::uint64_t at, const Slice& data) {
                    slice.cut(in_array + at, data.bytes(), window.data() + (slice.before(in_array + at) - written));
                    return Status();
                });
                wanted_end = in_array + length;
                if (length < run->length) {
                    *run = {run->offset + length, run->length - length};
                    break;
                }
            }
            window.resize(slice.before(wanted_end) - written);
            TRY(read_by_plan(place_, copies_, std::move(piece.plan), out, &encoded));
            console_.out.write(reinterpret_cast<const char*>(window.data()), static_cast<std::streamsize>(window.size()));
            if (!console_.out) return Status(Code::io_error, "cannot write to standard output");
            progress_->set(written += window.size());
        }
        return written == slice.bytes() ? Status() : Status(Code::internal, what_of(one) + ": " + std::to_string(written) + " bytes of " + std::to_string(slice.bytes()) + " were written; a defect in Cairn, please report it");
    }

    Console& console_;
    Place& place_;
    const VersionCopies& copies_;
    Output& output_;
    const std::vector<Wanted>& wanted_;
    bool replace_;
    ReadCost& cost_;
    Progress* progress_ = nullptr;
    std::uint64_t done_bytes_ = 0;
};

}  // namespace

Status extract(Console& console, Place& place, const VersionCopies& copies, Output& output, bool replace, ReadCost& cost) {
    return Extraction(console, place, copies, output, replace, cost).run();
}

}  // namespace cairn::cli
