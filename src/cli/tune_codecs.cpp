#include "cli/tune_codecs.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "describer/describer.hpp"
#include "describer/rules_file.hpp"
#include "world/real/memory.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr double worth = 1.02;
constexpr std::chrono::seconds describer_wait{30};

struct Setting {
    std::string_view value;  // of flush.codec
    Codec codec;
};
constexpr Setting all_settings[] = {{"off", Codec::none}, {"zero-runs", Codec::zero_runs}, {"delta-shuffle-zstd", Codec::numbers}, {"fast", Codec::planes}, {"small", Codec::planes_small}};

Result<SampleImage> read_files(const std::vector<std::string>& paths, const Settings& settings) {
    TRY_ASSIGN(auto rules, load_file_rules(settings.describe.rules));
    survive_lost_bytes();
    Describer describer(describer_program());
    const Describers describers{[&](const std::string& path, std::uint64_t offset, std::uint64_t length) { return describer.describe(path, offset, length, describer_wait); }, std::move(rules), static_cast<NameRule>(settings.describe.names)};
    SampleImage image;
    for (const std::string& path : paths) TRY(append_file(image, path, describers));
    if (image.bytes.empty()) return invalid_argument("--codecs: the files have no bytes");
    return image;
}

Result<std::vector<TriedSetting>> try_all(const SampleImage& image) {
    std::vector<TriedSetting> tried;
    for (const Setting& row : all_settings) {
        TriedSetting setting{std::string(row.value), {}};
        setting.trial.raw_bytes = setting.trial.stored_bytes = static_cast<double>(image.bytes.size());
        if (row.codec != Codec::none) {
            TRY_ASSIGN(setting.trial, try_codec(image, row.codec, wants_arrays(row.codec)));
        }
        tried.push_back(std::move(setting));
    }
    return tried;
}

std::string rate_or_none(double bytes_per_s) { return bytes_per_s > 0 ? format_rate(bytes_per_s) : "-"; }
std::string three_digits(double ratio) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", ratio);
    return text;
}

void print(Console& console, const SampleImage& image, const std::vector<TriedSetting>& tried, const std::string& best, unsigned threads) {
    TextTable table({left("flush.codec"), right("ratio"), right("encode, a thread"), right("decode, a thread"), right("sooner than off below"), left("")});
    for (const TriedSetting& each : tried) {
        const bool is_off = each.trial.encode_s == 0, pays = each.trial.ratio() >= worth;
        table.add({each.value, three_digits(each.trial.ratio()), is_off ? "-" : rate_or_none(each.trial.encode_bytes_per_s()), rate_or_none(each.trial.decode_bytes_per_s()),
                   is_off || !pays ? "-" : rate_or_none(threads * each.trial.encode_bytes_per_s() / worth), each.value == best ? "best" : ""});
    }
    console.out << table.to_string() << "\n"
                << format_bytes(image.bytes.size()) << ", of which " << std::lround(100 * static_cast<double>(image.described_bytes) / static_cast<double>(image.bytes.size())) << " % are described (cairn describe). "
                << "Below: bytes a second that storage takes of one node, where " << plural(threads, "thread") << " of it encode.\n"
                << "recommended: flush.codec = \"" << best << "\"\n";
}

Json json_of(const SampleImage& image, const std::vector<TriedSetting>& tried, const std::string& best, unsigned threads) {
    Json document = {{"bytes", image.bytes.size()}, {"described_bytes", image.described_bytes}, {"threads", threads}, {"recommended", best}, {"codecs", Json::array()}};
    for (const TriedSetting& each : tried)
        document["codecs"].push_back({{"codec", each.value}, {"ratio", each.trial.ratio()}, {"stored_bytes", static_cast<std::uint64_t>(each.trial.stored_bytes)},
                                      {"encode_bytes_per_s", each.trial.encode_bytes_per_s()}, {"decode_bytes_per_s", each.trial.decode_bytes_per_s()}});
    return document;
}

}  // namespace

std::string best_setting(const std::vector<TriedSetting>& tried, double storage_bytes_per_s, unsigned threads) {
    const auto shorter = [](const TriedSetting& each) { return each.trial.ratio() >= 16.0 / 15; };
    if (storage_bytes_per_s <= 0) return std::any_of(tried.begin(), tried.end(), shorter) ? "auto" : "off";
    std::string best = "off";
    double best_s = tried.front().trial.raw_bytes / storage_bytes_per_s / worth;
    for (const TriedSetting& each : tried) {
        const double took_s = durable_s(each.trial, each.trial.raw_bytes, storage_bytes_per_s, threads);
        if (each.value != "off" && took_s < best_s) best = each.value, best_s = took_s;
    }
    return best;
}

Result<std::vector<ConfigChange>> tune_codecs(Console& console, const Arguments& arguments, const Settings& settings) {
    double storage_bytes_per_s = 0;
    if (arguments.given("storage")) {
        const Result<std::uint64_t> rate = parse_bytes(arguments.text("storage"));
        if (!rate.ok() || *rate == 0) return invalid_argument("--storage '" + arguments.text("storage") + "': bytes a second that storage takes of one node, such as \"200 MB\"");
        storage_bytes_per_s = static_cast<double>(*rate);
    }
    TRY_ASSIGN(const SampleImage image, read_files(arguments.texts("codecs"), settings));
    TRY_ASSIGN(const std::vector<TriedSetting> tried, try_all(image));
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency() / 2);  // as many as a daemon has
    const std::string best = best_setting(tried, storage_bytes_per_s, threads);
    if (console.json) console.document(json_of(image, tried, best, threads).dump(2, ' ', false, Json::error_handler_t::replace));
    else print(console, image, tried, best, threads);
    const ConfigKey& key = *find_config_key("flush.codec");
    const Result<ConfigValue> value = key.parse(best);
    if (value.ok() && *value == key.get(settings)) return std::vector<ConfigChange>();
    return std::vector<ConfigChange>{{"flush.codec", "\"" + best + "\""}};
}

}  // namespace cairn::cli
