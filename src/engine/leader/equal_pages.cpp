#include "engine/leader/equal_pages.hpp"

#include <algorithm>
#include <utility>

#include "model/checksum_units.hpp"

namespace cairn::engine {

namespace {

std::vector<std::uint64_t> ends_of(const OwnBytes& own, std::uint64_t block_bytes) { return unit_ends({block_bytes, own.image_offset, own.cuts}, own.length); }

// The unit behind is the same, as in a run of zeros.
bool repeats(const std::vector<std::uint64_t>& checksums, std::size_t unit) { return unit + 1 < checksums.size() && checksums[unit] == checksums[unit + 1]; }

}  // namespace

bool EqualPages::has_room(const Place& place, std::uint64_t units, std::uint64_t pieces) const {
    return place.units + units <= limits_.run_units && 1 + place.sharing.size() + pieces <= limits_.run_pieces;
}

bool EqualPages::is_like(std::size_t place, std::size_t unit, std::uint64_t checksum, std::uint64_t length) const {
    const Place& there = places_[place];
    return unit < there.ends.size() && there.checksums[unit] == checksum && there.length_of(unit) == length;
}

const EqualPages::Known* EqualPages::find(std::uint64_t checksum) const {
    if (known_.empty()) return nullptr;
    for (std::size_t i = checksum & (known_.size() - 1);; i = (i + 1) & (known_.size() - 1)) {
        if (known_[i].place == 0) return nullptr;
        if (known_[i].checksum == checksum) return &known_[i];
    }
}

// The first one stays; of a unit that repeats itself the newest: more of these are likely to follow it.
void EqualPages::insert(Known known, bool repeats) {
    if (4 * (count_ + 1) > 3 * known_.size()) grow();
    std::size_t i = known.checksum & (known_.size() - 1);
    while (known_[i].place != 0 && known_[i].checksum != known.checksum) i = (i + 1) & (known_.size() - 1);
    if (known_[i].place != 0 && !repeats) return;
    if (known_[i].place == 0) ++count_;
    known_[i] = known;
}

void EqualPages::grow() {
    constexpr std::size_t first = 256;
    std::vector<Known> before = std::exchange(known_, std::vector<Known>(std::max(first, 2 * known_.size())));
    count_ = 0;
    for (const Known& each : before)
        if (each.place != 0) insert(each, false);
}

bool EqualPages::is_worth(const Stretch& stretch, std::uint64_t chunk_bytes) const {
    const bool is_long = stretch.length >= limits_.stretch_bytes || stretch.length == chunk_bytes;
    return is_long && stretch.length / stretch.matches.size() >= std::min(limits_.stretch_bytes / 2, chunk_bytes);
}

// Where the unit before was found, the one behind it is looked at first, so that a stretch is of few pieces.
std::vector<EqualPages::Stretch> EqualPages::look_through(const OwnBytes& own) const {
    const std::vector<std::uint64_t> ends = ends_of(own, block_bytes_);
    std::vector<Stretch> all;
    std::optional<std::pair<std::size_t, std::size_t>> before;  // place, unit
    for (std::size_t unit = 0; unit < ends.size(); ++unit) {
        const std::uint64_t offset = unit == 0 ? 0 : ends[unit - 1], length = ends[unit] - offset, checksum = own.checksums[unit];
        const bool goes_on = before && is_like(before->first, before->second + 1, checksum, length);
        if (goes_on) {
            ++before->second;
        } else {
            const Known* const known = find(checksum);
            before.reset();
            if (known && is_like(known->place - 1, known->unit, checksum, length)) before.emplace(known->place - 1, known->unit);
        }
        if (all.empty() || all.back().matches.empty() != !before) all.push_back({offset, 0, unit, 0, {}});
        Stretch& stretch = all.back();
        stretch.length += length;
        ++stretch.units;
        if (!before) continue;
        if (!goes_on || stretch.matches.empty()) stretch.matches.push_back({before->first, places_[before->first].begin_of(before->second), offset, 0, unit, 0});
        stretch.matches.back().length += length;
        ++stretch.matches.back().units;
    }
    for (Stretch& stretch : all)
        if (!stretch.matches.empty() && !is_worth(stretch, own.length)) stretch.matches.clear();
    return joined(std::move(all));
}

std::vector<EqualPages::Stretch> EqualPages::joined(std::vector<Stretch> stretches) {
    std::vector<Stretch> all;
    for (Stretch& each : stretches) {
        if (all.empty() || !all.back().matches.empty() || !each.matches.empty()) {
            all.push_back(std::move(each));
            continue;
        }
        all.back().length += each.length;
        all.back().units += each.units;
    }
    return all;
}

void EqualPages::forget() {
    is_forgotten_ = true;
    known_.clear();
    count_ = 0;
}

std::optional<std::size_t> EqualPages::keep(const OwnBytes& own, const Buffer* memory) {
    if (is_forgotten_ || kept_units_ + own.checksums.size() > limits_.units || !memory || own.length > UINT32_MAX) return std::nullopt;
    kept_units_ += own.checksums.size();
    Place& place = places_.emplace_back();
    place.rank = own.rank;
    place.image_offset = own.image_offset;
    place.memory = memory;
    place.units = own.checksums.size();
    const std::vector<std::uint64_t> ends = ends_of(own, block_bytes_);
    place.checksums = own.checksums;
    place.ends.assign(ends.begin(), ends.end());
    for (std::size_t unit = ends.size(); unit-- > 0;)
        insert({own.checksums[unit], static_cast<std::uint32_t>(places_.size()), static_cast<std::uint32_t>(unit)}, repeats(own.checksums, unit));
    return places_.size() - 1;
}

EqualPages::Held EqualPages::held(const Match& match) const {
    const Place& place = places_[match.place];
    return {place.rank, place.image_offset + match.at, place.memory};
}

bool EqualPages::share(const std::vector<Match>& matches, const OwnBytes& own) {
    std::uint64_t units = 0;
    for (const Match& match : matches) units += match.units;
    if (shared_pieces_ + matches.size() > limits_.pieces) return false;
    for (const Match& match : matches)
        if (!has_room(places_[match.place], units, matches.size())) return false;
    for (const Match& match : matches) {
        Place& place = places_[match.place];
        const auto first = own.checksums.begin() + static_cast<std::ptrdiff_t>(match.first_unit);
        const std::uint64_t begin = own.image_offset + match.offset;
        place.sharing.push_back({own.rank, begin, match.length, match.at, {first, first + static_cast<std::ptrdiff_t>(match.units)}, cuts_within(own.cuts, begin, match.length)});
        place.units += match.units;
        shared_bytes_ += match.length;
        ++shared_pieces_;
    }
    return true;
}

Status EqualPages::attach(std::vector<StoredRun>& runs) {
    for (Place& place : places_) {
        if (place.sharing.empty()) continue;
        if (!place.run || *place.run >= runs.size()) return {Code::internal, "what several images share was not written"};
        std::vector<StoredPiece>& pieces = runs[*place.run].pieces;
        pieces.insert(pieces.end(), std::make_move_iterator(place.sharing.begin()), std::make_move_iterator(place.sharing.end()));
        place.sharing.clear();
        std::stable_sort(pieces.begin(), pieces.end(), [](const StoredPiece& a, const StoredPiece& b) { return a.at < b.at; });
    }
    places_.clear();
    known_.clear();
    return {};
}

}  // namespace cairn::engine
