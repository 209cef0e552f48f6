#include "copies/read_turns.hpp"

#include <algorithm>

namespace cairn {

ReadTurns::ReadTurns(const std::vector<PartRead>& reads) {
    for (std::size_t i = 0; i < reads.size(); ++i) {
        if (i == 0 || reads[i].footer != reads[i - 1].footer) parts_.push_back({i, i, 0, 0});
        parts_.back().end = i + 1;
        parts_.back().left_bytes += reads[i].length;
        bytes_.push_back(reads[i].length);
        part_of_.push_back(parts_.size() - 1);
    }
}

bool ReadTurns::is_empty() const noexcept {
    return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.next == part.end; });
}

std::optional<std::size_t> ReadTurns::take() {
    Part* found = nullptr;
    for (Part& part : parts_) {
        if (part.next == part.end) continue;
        const bool is_better = !found || part.reading_bytes < found->reading_bytes || (part.reading_bytes == found->reading_bytes && part.left_bytes > found->left_bytes);
        if (is_better) found = &part;
    }
    if (!found) return std::nullopt;
    const std::size_t index = found->next++;
    found->left_bytes -= bytes_[index];
    found->reading_bytes += bytes_[index];
    return index;
}

void ReadTurns::ended(std::size_t index) { parts_[part_of_[index]].reading_bytes -= bytes_[index]; }

}  // namespace cairn
