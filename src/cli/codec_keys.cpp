#include "cli/codec_keys.hpp"

#include <time.h>

#include <cstdio>
#include <map>

#include "model/keys_seen.hpp"

namespace cairn::cli {

namespace {

constexpr std::size_t longest_run_bytes = 4 << 20;
constexpr int repeats = 5;
constexpr double mb = 1e6;
constexpr double sinks[] = {5 * mb, 20 * mb, 100 * mb, 200 * mb, 400 * mb, 800 * mb, 1600 * mb, 5000 * mb};

std::uint64_t thread_ns() {
    timespec time = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

std::string figure(double value, const char* format) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

// Each array alone: none is like another. `keys`: whose it was, by the key that it has then.
SampleImage apart(const SampleImage& image, std::map<std::uint32_t, std::uint32_t>& keys) {
    SampleImage alone = image;
    std::uint32_t next = 0;
    for (NumberArray& array : alone.arrays) {
        keys[++next] = array.key;
        array.key = next;
    }
    return alone;
}

// Small sets take some milliseconds, and what else runs on the machine takes caches and clock rates away.
KeyedTrial quickest(const SampleImage& image, Codec codec, const KeyEfforts& efforts) {
    KeyedTrial best = try_efforts(image, codec, efforts);
    for (int again = 1; again < repeats; ++again) {
        KeyedTrial next = try_efforts(image, codec, efforts);
        if (next.made.took_s < best.made.took_s) best = std::move(next);
    }
    return best;
}

std::map<std::uint32_t, std::uint64_t> stored_by_key(const std::vector<KeyEncoded>& keys, const std::map<std::uint32_t, std::uint32_t>& names) {
    std::map<std::uint32_t, std::uint64_t> stored;
    for (const KeyEncoded& each : keys) stored[names.count(each.key) != 0 ? names.at(each.key) : each.key] += each.stored_bytes;
    return stored;
}

}  // namespace

KeyedTrial try_efforts(const SampleImage& image, Codec codec, const KeyEfforts& efforts) {
    std::map<std::pair<std::uint32_t, Effort>, KeyEncoded> rows;
    double stored_bytes = 0, took_s = 0;
    for (std::size_t at = 0; at < image.bytes.size(); at += longest_run_bytes) {
        const ByteView raw = ByteView(image.bytes).subspan(at, std::min(longest_run_bytes, image.bytes.size() - at));
        const std::vector<NumberArray> arrays = within(image.arrays, at, raw.size());
        Bytes stored(raw.size() - raw.size() / 16);
        ByKey keys{&efforts, thread_ns};
        const std::uint64_t begun = thread_ns();
        const std::uint64_t made = encode(codec, raw, arrays, stored, nullptr, &keys);
        const std::uint64_t took_ns = thread_ns() - begun;
        KeysSeen run;
        run.add({0, effort_of(codec).value_or(Effort::fast), raw.size(), made == 0 ? raw.size() : made, took_ns}, keys.seen);
        for (const KeyEncoded& each : run.all()) {
            KeyEncoded& row = rows[{each.key, each.effort}];
            row.key = each.key;
            row.effort = each.effort;
            row.raw_bytes += each.raw_bytes;
            row.stored_bytes += each.stored_bytes;
            row.took_ns += each.took_ns;
        }
        stored_bytes += static_cast<double>(made == 0 ? raw.size() : made);
        took_s += static_cast<double>(took_ns) * 1e-9;
    }
    const auto raw_bytes = static_cast<double>(image.bytes.size());
    KeyedTrial trial{{stored_bytes / raw_bytes, took_s / raw_bytes}, {}};
    for (const auto& [key, row] : rows) trial.keys.push_back(row);
    return trial;
}

TextTable key_table() {
    return TextTable({left("files of"), right("storage MB/s"), right("off"), right("fast"), right("small"), right("by key"), right("to the best of these"), right("keys"), right("left"), right("small")});
}

void add_key_rows(TextTable& table, const std::string& name, const SampleImage& image) {
    const KeyedTrial fast = quickest(image, Codec::planes, {}), small = quickest(image, Codec::planes_small, {});
    KeyChoice choice;
    std::vector<KeyEncoded> seen = fast.keys;
    seen.insert(seen.end(), small.keys.begin(), small.keys.end());
    choice.record(seen, Effort::fast);
    for (const double sink : sinks) {
        const Speeds speeds{1, sink};
        const KeyEfforts efforts = choice.best(Effort::fast, speeds);
        const double by_key = speeds.durable(quickest(image, Codec::planes, efforts).made), best = std::max({sink, speeds.durable(fast.made), speeds.durable(small.made)});
        const auto count = [&](Effort effort) { return std::to_string(std::count_if(efforts.begin(), efforts.end(), [&](const KeyEffort& each) { return each.effort == effort; })); };
        table.add({name, figure(sink / mb, "%.0f"), figure(sink / mb, "%.1f"), figure(speeds.durable(fast.made) / mb, "%.1f"), figure(speeds.durable(small.made) / mb, "%.1f"),
                   figure(std::max(by_key, sink) / mb, "%.1f"), figure(std::max(by_key, sink) / best, "%.3f"), std::to_string(fast.keys.size()), count(Effort::none), count(Effort::small)});
    }
}

TextTable scheme_table() { return TextTable({left("files of"), right("keys"), right("side by side"), right("each alone"), right("each key its best"), right("gain")}); }

void add_scheme_row(TextTable& table, const std::string& name, const SampleImage& image) {
    std::map<std::uint32_t, std::uint32_t> names;
    const SampleImage alone = apart(image, names);
    const KeyedTrial together = try_efforts(image, Codec::planes, {}), by_itself = try_efforts(alone, Codec::planes, {});
    const std::map<std::uint32_t, std::uint64_t> one = stored_by_key(together.keys, {}), other = stored_by_key(by_itself.keys, names);
    double best = 0;
    for (const auto& [key, stored] : one) best += static_cast<double>(other.count(key) != 0 ? std::min(stored, other.at(key)) : stored);
    const auto raw = static_cast<double>(image.bytes.size());
    table.add({name, std::to_string(one.size()), figure(1 / together.made.stored, "%.3f"), figure(1 / by_itself.made.stored, "%.3f"), figure(raw / best, "%.3f"),
               figure(raw / best * std::min(together.made.stored, by_itself.made.stored), "%.4f")});
}

}  // namespace cairn::cli
