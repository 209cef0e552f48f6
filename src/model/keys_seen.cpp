#include "model/keys_seen.hpp"

namespace cairn {

namespace {
constexpr std::size_t rows_max = 4096;  // some hundred KiB, for variables without end

std::uint64_t less(std::uint64_t all, std::uint64_t some) { return all - std::min(all, some); }

void add_to(KeyEncoded& sum, const KeyEncoded& some) {
    sum.raw_bytes += some.raw_bytes;
    sum.stored_bytes += some.stored_bytes;
    sum.took_ns += some.took_ns;
}
}  // namespace

void KeysSeen::add(KeyEncoded all, const std::vector<KeyEncoded>& keys) {
    KeyEncoded rest = all;
    for (const KeyEncoded& each : keys) {
        rest.raw_bytes = less(rest.raw_bytes, each.raw_bytes);
        rest.stored_bytes = less(rest.stored_bytes, each.stored_bytes);
        rest.took_ns = less(rest.took_ns, each.took_ns);
    }
    // A run takes some time, whatever is in it: where hardly anything is of no key, that is not the time of what is.
    const bool is_dealt = rest.raw_bytes < all.raw_bytes / 8;
    const double share = is_dealt ? static_cast<double>(rest.took_ns) / static_cast<double>(all.raw_bytes) : 0;
    for (KeyEncoded each : keys) {
        each.took_ns += static_cast<std::uint64_t>(share * static_cast<double>(each.raw_bytes));
        put(each);
    }
    if (is_dealt) rest.took_ns = static_cast<std::uint64_t>(share * static_cast<double>(rest.raw_bytes));
    if (rest.raw_bytes > 0) put(rest);
}

void KeysSeen::put(const KeyEncoded& some) {
    // What is left as it is has nothing to do with what is of no key.
    const bool has_room = rows_.size() < rows_max || rows_.count({some.key, some.effort}) != 0;
    if (!has_room && some.effort == Effort::none) return;
    const std::uint32_t key = has_room ? some.key : 0;
    KeyEncoded& row = rows_[{key, some.effort}];
    row.key = key;
    row.effort = some.effort;
    add_to(row, some);
}

std::vector<KeyEncoded> KeysSeen::all() const {
    std::vector<KeyEncoded> keys;
    for (const auto& [of, row] : rows_) keys.push_back(row);
    return keys;
}

std::vector<KeyEncoded> KeysSeen::take() {
    std::vector<KeyEncoded> keys, rest(efforts_count);
    for (const auto& [place, row] : rows_) {
        if (row.key == 0) add_to(rest[static_cast<std::size_t>(row.effort)], row);
        else keys.push_back(row);
    }
    rows_.clear();
    std::sort(keys.begin(), keys.end(), [](const KeyEncoded& a, const KeyEncoded& b) { return a.raw_bytes > b.raw_bytes; });
    for (; keys.size() > keys_max - efforts_count; keys.pop_back())
        if (keys.back().effort != Effort::none) add_to(rest[static_cast<std::size_t>(keys.back().effort)], keys.back());
    for (std::size_t effort = 0; effort < efforts_count; ++effort) {
        rest[effort].effort = static_cast<Effort>(effort);
        if (rest[effort].raw_bytes > 0) keys.push_back(rest[effort]);
    }
    return keys;
}

}  // namespace cairn
