// Handing out: ranges by offset, as a tree in which each knows how far those below it reach, so that where none can touch a run nobody is asked.
#include "read/hand_out.hpp"

#include <algorithm>

namespace cairn {

void HandOut::add(Rank rank, ImageRange range, std::string what, Receiver receiver, Slice memory) {
    if (range.length == 0) return;  // it has all its bytes
    by_rank_[rank].push_back({range, 0, 0, std::move(what), std::move(receiver), std::move(memory)});
    sorted_ = false;
}

void HandOut::sort() {
    for (auto& [rank, all] : by_rank_) {
        std::stable_sort(all.begin(), all.end(), [](const Waiting& a, const Waiting& b) { return a.range.offset < b.range.offset; });
        note_ends(Tree{all});
    }
    sorted_ = true;
}

std::uint64_t HandOut::note_ends(const Tree& tree) {
    if (tree.empty()) return 0;
    return tree.root().ends_at_most = std::max({tree.root().end(), note_ends(tree.before()), note_ends(tree.behind())});
}

Status HandOut::take(Rank rank, std::uint64_t image_offset, const Slice& data) {
    if (!sorted_) sort();
    const auto found = by_rank_.find(rank);
    if (found == by_rank_.end()) return {};
    return hand_out(Tree{found->second}, image_offset, data);
}

Status HandOut::hand_out(const Tree& tree, std::uint64_t image_offset, const Slice& data) {
    if (tree.empty()) return {};
    ++looked_at_;
    Waiting& each = tree.root();
    if (each.ends_at_most <= image_offset) return {};
    TRY(hand_out(tree.before(), image_offset, data));
    const std::uint64_t run_end = image_offset + data.length;
    if (each.range.offset >= run_end) return {};
    const std::uint64_t begin = std::max(image_offset, each.range.offset), end = std::min(run_end, each.end());
    if (begin < end) {
        each.taken_bytes += end - begin;
        TRY(each.receiver(begin - each.range.offset, data.part(begin - image_offset, end - begin)));
    }
    return hand_out(tree.behind(), image_offset, data);
}

template <class Visit>
void HandOut::visit(const Tree& tree, ImageRange run, const Visit& each) {
    if (tree.empty() || tree.root().ends_at_most <= run.offset) return;
    visit(tree.before(), run, each);
    Waiting& root = tree.root();
    if (root.range.offset >= run.offset + run.length) return;
    if (root.end() > run.offset) each(root);
    visit(tree.behind(), run, each);
}

// Two who want the same bytes get them one after the other.
Slice HandOut::memory_of(Rank rank, ImageRange unit) {
    if (!sorted_) sort();
    const auto found = by_rank_.find(rank);
    if (found == by_rank_.end()) return {};
    std::size_t touched = 0;
    Slice memory;
    visit(Tree{found->second}, unit, [&](const Waiting& each) {
        const bool holds_all = each.range.offset <= unit.offset && unit.offset + unit.length <= each.end();
        if (++touched == 1 && holds_all && each.memory.buffer) memory = each.memory.part(unit.offset - each.range.offset, unit.length);
    });
    return touched == 1 ? memory : Slice();
}

void HandOut::note_landed(Rank rank, ImageRange run) {
    const auto found = by_rank_.find(rank);
    if (found == by_rank_.end()) return;
    visit(Tree{found->second}, run, [&](Waiting& each) { each.taken_bytes += std::min(each.end(), run.offset + run.length) - std::max(each.range.offset, run.offset); });
}

Receiving HandOut::receiving() {
    Receiving receiving([this](Rank rank, std::uint64_t offset, const Slice& data) { return take(rank, offset, data); });
    receiving.memory = [this](Rank rank, std::uint64_t offset, std::uint64_t length) { return memory_of(rank, {offset, length}); };
    receiving.landed = [this](Rank rank, std::uint64_t offset, std::uint64_t length) { note_landed(rank, {offset, length}); };
    return receiving;
}

std::vector<WantedImage> HandOut::wanted() const {
    std::vector<WantedImage> wanted;
    for (const auto& [rank, all] : by_rank_) {
        WantedImage& image = wanted.emplace_back(WantedImage{rank, {}});
        for (const Waiting& each : all) image.ranges.push_back(each.range);
    }
    return wanted;
}

Status HandOut::check_complete() const {
    for (const auto& [rank, all] : by_rank_)
        for (const Waiting& each : all)
            if (each.taken_bytes != each.range.length)
                return {Code::internal, each.what + " of rank " + std::to_string(rank) + " (" + std::to_string(each.range.length) + " bytes from " +
                                            std::to_string(each.range.offset) + " of its image): " + std::to_string(each.taken_bytes) +
                                            " bytes were handed out; a defect in Cairn, please report it"};
    return {};
}

}  // namespace cairn
