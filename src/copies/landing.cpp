#include "copies/landing.hpp"

namespace cairn {

std::optional<std::vector<Destination>> destinations_of(const Receiving& to, Rank rank, std::uint64_t image_offset, const std::vector<std::uint64_t>& ends) {
    std::vector<Destination> into;
    std::uint64_t begin = 0;
    for (const std::uint64_t end : ends) {
        Slice memory = to.memory(rank, image_offset + begin, end - begin);
        if (!memory.buffer) return std::nullopt;
        const bool goes_on = !into.empty() && into.back().into.buffer == memory.buffer && into.back().into.offset + into.back().into.length == memory.offset;
        if (goes_on) into.back().into.length += memory.length;
        else into.push_back({begin, std::move(memory)});
        begin = end;
    }
    return into;
}

std::vector<ImageRange> differing_units(const std::vector<std::uint64_t>& made, std::span<const std::uint64_t> expected, const std::vector<std::uint64_t>& ends, std::uint64_t at) {
    std::vector<ImageRange> differing;
    for (std::size_t i = 0; i < made.size(); ++i) {
        const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
        if (made[i] != expected[i]) differing.push_back({at + begin, ends[i] - begin});
    }
    return differing;
}

}  // namespace cairn
