#include "cli/codec_keys.hpp"

#include <cstdio>
#include <map>

namespace cairn::cli {

namespace {

constexpr std::size_t longest_run_bytes = 4 << 20;
constexpr int repeats = 5;
constexpr double mb = 1e6;
constexpr double sinks[] = {5 * mb, 20 * mb, 100 * mb, 200 * mb, 400 * mb, 800 * mb, 1600 * mb, 5000 * mb};

std::string figure(double value, const char* format) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

// Each array alone: none is like another. `keys`: whose it was, by the key that it has then.
SampleImage apart(const SampleImage& image, std::map<std::uint32_t, std::uint32_t>& keys) {
    std::vector<std::uint32_t> next;
    for (const NumberArray& array : image.arrays()) {
        next.push_back(static_cast<std::uint32_t>(next.size() + 1));
        keys[next.back()] = array.key;
    }
    SampleImage alone = image;
    alone.set_keys(next);
    return alone;
}

// Of each raw byte.
Made made_of(const CodecTrial& trial) { return {1 / trial.ratio(), trial.encode_s / trial.raw_bytes}; }

// Small sets take some milliseconds, and what else runs on the machine takes caches and clock rates away.
CodecTrial quickest(const SampleImage& image, Codec codec, const KeyEfforts& efforts) {
    CodecTrial best = try_efforts(image, codec, efforts);
    for (int again = 1; again < repeats; ++again) {
        CodecTrial next = try_efforts(image, codec, efforts);
        if (next.encode_s < best.encode_s) best = std::move(next);
    }
    return best;
}

std::map<std::uint32_t, std::uint64_t> stored_by_key(const std::vector<KeyEncoded>& keys, const std::map<std::uint32_t, std::uint32_t>& names) {
    std::map<std::uint32_t, std::uint64_t> stored;
    for (const KeyEncoded& each : keys) stored[names.count(each.key) != 0 ? names.at(each.key) : each.key] += each.stored_bytes;
    return stored;
}

}  // namespace

CodecTrial try_efforts(const SampleImage& image, Codec codec, const KeyEfforts& efforts) {
    return try_codec({{&image, 1}}, runs_of(image.bytes(), longest_run_bytes), {codec, true, efforts}).value();
}

TextTable key_table() {
    return TextTable({left("files of"), right("storage MB/s"), right("off"), right("fast"), right("small"), right("by key"), right("to the best of these"), right("keys"), right("left"), right("small")});
}

void add_key_rows(TextTable& table, const std::string& name, const SampleImage& image) {
    const CodecTrial fast = quickest(image, Codec::planes, {}), small = quickest(image, Codec::planes_small, {});
    KeyChoice choice;
    std::vector<KeyEncoded> seen = fast.keys;
    seen.insert(seen.end(), small.keys.begin(), small.keys.end());
    choice.record(seen, Effort::fast);
    for (const double sink : sinks) {
        const Speeds speeds{1, sink};
        const KeyEfforts efforts = choice.best(Effort::fast, speeds);
        const double by_key = speeds.durable(made_of(quickest(image, Codec::planes, efforts))), best = std::max({sink, speeds.durable(made_of(fast)), speeds.durable(made_of(small))});
        const auto count = [&](Effort effort) { return std::to_string(std::count_if(efforts.begin(), efforts.end(), [&](const KeyEffort& each) { return each.effort == effort; })); };
        table.add({name, figure(sink / mb, "%.0f"), figure(sink / mb, "%.1f"), figure(speeds.durable(made_of(fast)) / mb, "%.1f"), figure(speeds.durable(made_of(small)) / mb, "%.1f"),
                   figure(std::max(by_key, sink) / mb, "%.1f"), figure(std::max(by_key, sink) / best, "%.3f"), std::to_string(fast.keys.size()), count(Effort::none), count(Effort::small)});
    }
}

TextTable scheme_table() { return TextTable({left("files of"), right("keys"), right("side by side"), right("each alone"), right("each key its best"), right("gain")}); }

void add_scheme_row(TextTable& table, const std::string& name, const SampleImage& image) {
    std::map<std::uint32_t, std::uint32_t> names;
    const SampleImage alone = apart(image, names);
    const CodecTrial together = try_efforts(image, Codec::planes, {}), by_itself = try_efforts(alone, Codec::planes, {});
    const std::map<std::uint32_t, std::uint64_t> one = stored_by_key(together.keys, {}), other = stored_by_key(by_itself.keys, names);
    double best = 0;
    for (const auto& [key, stored] : one) best += static_cast<double>(other.count(key) != 0 ? std::min(stored, other.at(key)) : stored);
    const auto raw = static_cast<double>(image.bytes());
    table.add({name, std::to_string(one.size()), figure(together.ratio(), "%.3f"), figure(by_itself.ratio(), "%.3f"), figure(raw / best, "%.3f"),
               figure(raw / best * std::min(1 / together.ratio(), 1 / by_itself.ratio()), "%.4f")});
}

}  // namespace cairn::cli
