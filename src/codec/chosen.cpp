#include "codec/chosen.hpp"

#include <algorithm>

#include "codec/planes_layout.hpp"

namespace cairn {

namespace {

constexpr std::size_t guess_bytes = 64 << 10;  // of what nobody knows: it may be something else behind that
constexpr std::size_t sample_bytes_min = 64;
constexpr double hardly_shorter = 0.97;    // of an array: where more is left, what is told of it is worth nothing
constexpr double clearly_better = 0.985;   // of what is left by what is told: less is chance
constexpr double about_as_good = 0.02;     // as a share of raw bytes
constexpr double nearly_as_alike = 0.75;   // as the first of them: more bytes of the same records

// What a sample finds in bytes that were taken for an array. Better than what was told, or nothing changes.
void contest(const Original& original, Effort effort, std::span<std::byte> column, Chosen& chosen) {
    const Choice sampled = choose(original);
    if (sampled.cost.all < clearly_better * chosen.plain.cost.all) {
        chosen.plain = sampled;
        chosen.is_sampled = true;
    }
    if (const std::size_t record = guess_record(original.raw); record != 0) chosen.records = choose_columns(original.raw, record, sampled.way.is_swapped, chosen.plain.cost.all, effort, column);
}

// As if it had been told of numbers as wide as rows that are each told by the one before: they are halves of one.
void contest_width(ByteView raw, const NumberArray& array, Effort effort, Chosen& chosen) {
    const Way& way = chosen.plain.way;
    const std::uint64_t wide = std::uint64_t{way.width} * way.stride[0];
    if (way.has_base || way.strides != 1 || way.stride[0] == 1 || (wide != 2 && wide != 4 && wide != 8)) return;
    const Choice wider = choose_column(raw, static_cast<std::uint8_t>(wide), array.is_swapped, effort);
    if (wider.cost.all >= clearly_better * chosen.plain.cost.all) return;
    chosen.plain = wider;
    chosen.is_sampled = true;
}

// What was found to be the best of one place is likely the best of the next.
bool is_same(const Choice& next, const Choice& before) { return next.way == before.way && next.cost.all < std::min(hardly_shorter, before.cost.all + about_as_good); }

// Neighbouring places of which the same is found, from the first on.
std::size_t length_of(const Original& ahead, const Way& way) {
    const std::size_t bytes = ahead.raw.size();
    std::size_t length = std::min(guess_bytes, bytes);
    while (length >= sample_bytes_min && bytes - length >= sample_bytes_min) {
        const std::size_t more = std::min(guess_bytes, bytes - length);
        if (!(choose(ahead.part(length, more)).way == way)) break;
        length += more;
    }
    return length;
}
// Whole records, so that the next stretch begins at the same place of one.
std::size_t length_of(ByteView ahead, std::size_t record) {
    std::size_t length = std::min(guess_bytes, ahead.size());
    for (const double share = alike(ahead.first(length), record); length < ahead.size();) {
        const std::size_t more = std::min(guess_bytes, ahead.size() - length);
        if (alike(ahead.subspan(length, more), record) < nearly_as_alike * share) break;
        length += more;
    }
    return length < ahead.size() || length == stretch_bytes ? length - length % record : length;
}

// Where nothing repeats either, for it may be records of bytes that each record's next ones follow.
std::size_t noise_length(ByteView ahead) {
    std::size_t length = 0;
    while (length < ahead.size()) {
        const ByteView next = ahead.subspan(length, std::min(guess_bytes, ahead.size() - length));
        if (!is_noise(next) || guess_record(next) != 0) break;
        length += next.size();
    }
    return length;
}

}  // namespace

// What an older version tells of is asked each time: columns have no base, and may not be what is best any more.
Chosen choose_array(const Original& original, const NumberArray& array, Effort effort, std::span<std::byte> column, const Chosen* before, std::size_t before_bytes) {
    const ByteView raw = original.raw;
    Chosen chosen;
    if (before && before->records) {
        if (original.base.empty()) {
            Records moved = *before->records;
            moved.move(before_bytes);
            chosen.records = choose_columns(raw, moved.columns.record, moved.is_swapped, hardly_shorter, effort, column, &moved);
            chosen.plain = before->plain;
            if (chosen.records) return chosen;
        }
        before = nullptr;  // what was chosen beside them is not known to be good
    }
    chosen.plain = choose(original, array, effort, before ? &before->plain : nullptr);
    if (before && !before->is_sampled && is_same(chosen.plain, before->plain)) return chosen;
    contest_width(raw, array, effort, chosen);
    const Choice& plain = chosen.plain;
    if (may_be_records(raw, array, plain.way)) chosen.records = choose_columns(raw, std::size_t{array.row} * array.width, array.is_swapped, plain.cost.all, effort, column);
    if (!chosen.records && (plain.cost.all >= hardly_shorter || (before && before->is_sampled) || is_more_alike(raw, array))) contest(original, effort, column, chosen);
    return chosen;
}

std::size_t choose_rest(const Original& ahead, Effort effort, std::span<std::byte> column, std::optional<Chosen>& chosen) {
    const std::size_t noise = ahead.base.empty() ? noise_length(ahead.raw) : 0;
    if (noise != 0) {
        chosen.emplace();
        return noise;
    }
    const Original first = ahead.part(0, std::min(guess_bytes, ahead.raw.size()));
    const std::size_t record = guess_record(first.raw), length = record == 0 ? 0 : length_of(ahead.raw, record);
    const std::optional<Records> before = chosen && record != 0 && ahead.base.empty() ? chosen->records : std::nullopt;
    chosen.emplace();
    if (before && before->columns.record == record) chosen->records = choose_columns(ahead.raw.first(length), record, false, hardly_shorter, effort, column, &*before);
    if (chosen->records) return length;
    if (first.raw.size() >= sample_bytes_min) chosen->plain = choose(first);
    if (record != 0) chosen->records = choose_columns(ahead.raw.first(length), record, chosen->plain.way.is_swapped, chosen->plain.cost.all, effort, column);
    return chosen->records ? length : length_of(ahead, chosen->plain.way);
}

}  // namespace cairn
