// How each stretch is stored: as numbers with neighbours, or as records, by column. What is told of an array and what a sample finds compete, where something speaks for the sample.
#pragma once

#include <optional>
#include <span>

#include "codec/prediction.hpp"
#include "codec/records.hpp"

namespace cairn {

struct Chosen {
    Choice plain;
    std::optional<Records> records;  // better than that
    bool is_sampled = false;         // what was told of it is not the best
};

// `column`: memory as long as a stretch. `before`: what was chosen for the stretch before, which is of the same array and so many bytes long.
Chosen choose_array(const Original& original, const NumberArray& array, Effort effort, std::span<std::byte> column, const Chosen* before = nullptr, std::size_t before_bytes = 0);
// Of bytes of which nothing is known: how many of them are best one stretch. `chosen`: how; and before, how the stretch before them was.
std::size_t choose_rest(const Original& ahead, Effort effort, std::span<std::byte> column, std::optional<Chosen>& chosen);

}  // namespace cairn
