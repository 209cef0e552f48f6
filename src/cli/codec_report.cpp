#include "cli/codec_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text_table.hpp"
#include "base/units.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string rate_or_none(double bytes_per_s) { return bytes_per_s > 0 ? format_rate(bytes_per_s) : "-"; }
std::string digits(double value, const char* format) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}
std::string ratio_text(double ratio) { return digits(ratio, "%.3f"); }

bool knows_storage(const SearchInput& input) { return input.storage_bytes_per_s > 0; }

std::string durable_text(const SearchInput& input, const CodecTrial& trial) { return format_rate(trial.raw_bytes / reached(input, trial)); }

bool is_same(const Combination& a, const Combination& b) {
    return a.codec == b.codec && a.merge_ranks == b.merge_ranks && a.merge_bytes == b.merge_bytes && a.block_bytes == b.block_bytes;
}

// Below so many bytes a second of storage it is sooner durable than without a codec; 0: never.
double pays_below(const SearchInput& input, const CodecTrial& trial) {
    constexpr double worth = 1.02;
    return trial.encode_s > 0 && trial.part_ratio() >= worth ? input.threads * trial.encode_bytes_per_s() / worth : 0;
}

std::vector<TextTable::Column> with_durable(std::vector<TextTable::Column> columns, const SearchInput& input) {
    if (knows_storage(input)) columns.push_back(right("durable"));
    columns.push_back(left(""));
    return columns;
}

std::string codecs_table(const SearchInput& input, const SearchReport& report) {
    TextTable table(with_durable({left("flush.codec"), right("ratio"), right("encode"), right("decode"), right("pays below")}, input));
    for (const Tried& each : report.codecs) {
        const CodecTrial& trial = each.trial;
        std::vector<std::string> cells = {each.combination.codec, ratio_text(trial.part_ratio()), rate_or_none(trial.encode_bytes_per_s()), rate_or_none(trial.decode_bytes_per_s()), rate_or_none(pays_below(input, trial))};
        if (knows_storage(input)) cells.push_back(durable_text(input, trial));
        cells.push_back(each.combination.codec == report.codec ? "best" : "");
        table.add(std::move(cells));
    }
    return table.to_string();
}

// Turns and blocks: what makes them, and what came of it.
std::string merged_table(const SearchInput& input, const SearchReport& report) {
    TextTable table(with_durable({left("flush.codec"), right("merge_ranks"), right("merge_bytes"), right("block_bytes"), right("images a run"), right("ratio"), right("encode"), right("decode")}, input));
    const auto add = [&](const Tried& each, bool is_apart) {
        const Combination& way = each.combination;
        std::vector<std::string> cells = {way.codec, std::to_string(way.merge_ranks), is_apart ? "-" : format_bytes(way.merge_bytes), format_bytes(way.block_bytes), std::to_string(way.images), ratio_text(each.trial.part_ratio()),
                                          rate_or_none(each.trial.encode_bytes_per_s()), rate_or_none(each.trial.decode_bytes_per_s())};
        if (knows_storage(input)) cells.push_back(durable_text(input, each.trial));
        cells.push_back(is_same(way, report.best) ? "best" : "");
        table.add(std::move(cells));
    };
    for (const Tried& apart : report.codecs) {
        const auto is_of = [&](const Tried& each) { return each.combination.codec == apart.combination.codec; };
        if (std::none_of(report.merged.begin(), report.merged.end(), is_of)) continue;
        if (table.rows() > 0) table.rule();
        add(apart, true);
        for (const Tried& each : report.merged)
            if (is_of(each)) add(each, false);
    }
    return table.to_string();
}

std::string blocks_table(const SearchInput& input, const SearchReport& report) {
    TextTable table(with_durable({left("flush.codec"), right("block_bytes"), right("runs of"), right("ratio"), right("encode"), right("decode")}, input));
    std::vector<const Tried*> rows;
    for (const Tried& each : report.blocks) rows.push_back(&each);
    for (const Tried& each : report.codecs)
        if (each.combination.codec == report.blocks.front().combination.codec) rows.push_back(&each);
    std::sort(rows.begin(), rows.end(), [](const Tried* a, const Tried* b) { return a->combination.block_bytes < b->combination.block_bytes; });
    for (const Tried* each : rows) {
        const CodecTrial& trial = each->trial;
        std::vector<std::string> cells = {each->combination.codec, format_bytes(each->combination.block_bytes), format_bytes(static_cast<std::uint64_t>(trial.run_bytes())), ratio_text(trial.part_ratio()),
                                          rate_or_none(trial.encode_bytes_per_s()), rate_or_none(trial.decode_bytes_per_s())};
        if (knows_storage(input)) cells.push_back(durable_text(input, trial));
        cells.push_back(is_same(each->combination, report.best) ? "best" : "");
        table.add(std::move(cells));
    }
    return table.to_string();
}

std::uint64_t count_of(const Method& method, Effort effort) {
    return static_cast<std::uint64_t>(std::count_if(method.efforts.begin(), method.efforts.end(), [&](const KeyEffort& each) { return each.effort == effort; }));
}

std::uint64_t keys_of(const CodecTrial& trial) {
    std::uint64_t keys = 0;
    for (std::size_t i = 0; i < trial.keys.size(); ++i) keys += trial.keys[i].key != 0 && (i == 0 || trial.keys[i].key != trial.keys[i - 1].key);
    return keys;
}

std::string auto_text(const SearchReport& report) {
    const auto row = std::find_if(report.codecs.begin(), report.codecs.end(), [](const Tried& each) { return each.combination.codec == "auto"; });
    if (row == report.codecs.end()) return "";
    const Method& method = row->combination.method;
    if (method.codec == Codec::none) return "auto: off, in the end: no codec makes versions a twentieth sooner durable.\n";
    const std::string all_else = method.codec == Codec::planes ? "fast" : "small";
    const std::uint64_t keys = keys_of(row->trial);
    if (keys == 0) return "auto: " + all_else + ", in the end.\n";
    std::map<std::string, std::uint64_t> counts = {{"fast", count_of(method, Effort::fast)}, {"small", count_of(method, Effort::small)}};
    const std::uint64_t left = count_of(method, Effort::none);
    counts[all_else] += keys - std::min(keys, counts["fast"] + counts["small"] + left);
    return "auto, in the end: of " + plural(keys, "variable") + " " + std::to_string(left) + " as they are, " + std::to_string(counts["fast"]) + " as fast stores them, " + std::to_string(counts["small"]) + " as small does; all else as " + all_else + " does.\n";
}

std::string sample_text(const SampleFacts& sample) {
    std::string text = plural(sample.files, "file") + ", " + format_bytes(sample.file_bytes) + ": ";
    if (sample.bytes == sample.file_bytes) text += "looked at all of it";
    else if (sample.files_left_out == 0) text += "looked at " + format_bytes(sample.bytes) + " of it, the same share of each file, in stretches that lie evenly over it (--sample)";
    else text += "looked at " + format_bytes(sample.bytes) + " of it, in " + std::to_string(sample.files - sample.files_left_out) + " of the files (--sample)";
    text += ". " + std::to_string(std::lround(100 * static_cast<double>(sample.described_bytes) / static_cast<double>(sample.bytes))) + " % are described (cairn describe).\n";
    text += sample.are_ranks ? "Each file is a rank's image, all of one node.\n" : "All files are one image, as `cairn watch` makes it of a node's; with --ranks each is a rank's.\n";
    return text;
}

std::string recommended_text(const SearchInput& input, const SearchReport& report) {
    std::string text = "recommended: flush.codec = \"" + report.codec + "\"";
    const bool merges = report.best.merge_ranks > 1;
    if (merges) text += ", merge_ranks = " + std::to_string(report.merge_ranks) + ", merge_bytes = \"" + format_bytes_exact(report.merge_bytes) + "\"";
    if (merges || report.block_bytes != input.present.block_bytes) text += ", block_bytes = \"" + format_bytes_exact(report.block_bytes) + "\"";
    text += "\n";
    if (report.is_refuted) return text + "  that is what is set today; what seemed better was not, when both were tried again\n";
    if (report.changes.empty()) return text + "  that is what is set today\n";
    if (knows_storage(input)) text += "  durable in " + digits(1 / report.gain, "%.2f") + " of the time that today's settings take\n";
    else text += "  " + digits(1 / report.gain, "%.2f") + " of the bytes that are stored with today's settings, by fast where a codec is auto\n";
    if (merges) text += "  a rank that restores alone reads and decodes the runs of up to " + plural(report.best.images, "image") + "; the ranks of a node together do so once\n";
    return text;
}

Json json_of(const SearchInput& input, const Tried& tried) {
    const Combination& way = tried.combination;
    const CodecTrial& trial = tried.trial;
    Json row = {{"codec", way.codec},
                {"merge_ranks", way.merge_ranks},
                {"merge_bytes", way.merge_ranks > 1 ? Json(way.merge_bytes) : Json()},
                {"block_bytes", way.block_bytes},
                {"images_a_run", way.images},
                {"runs", trial.runs},
                {"ratio", trial.part_ratio()},
                {"stored_bytes", static_cast<std::uint64_t>(trial.part_bytes)},
                {"encode_bytes_per_s", trial.encode_bytes_per_s()},
                {"decode_bytes_per_s", trial.decode_bytes_per_s()},
                {"durable_bytes_per_s", knows_storage(input) ? Json(trial.raw_bytes / reached(input, trial)) : Json()}};
    if (way.codec == "auto") row["keys"] = {{"all", keys_of(trial)}, {"off", count_of(way.method, Effort::none)}, {"fast", count_of(way.method, Effort::fast)}, {"small", count_of(way.method, Effort::small)}};
    return row;
}

Json rows_json(const SearchInput& input, const std::vector<Tried>& rows) {
    Json all = Json::array();
    for (const Tried& each : rows) all.push_back(json_of(input, each));
    return all;
}

}  // namespace

std::string codecs_text(const SampleFacts& sample, const SearchInput& input, const SearchReport& report) {
    std::string text = sample_text(sample) + "\n" + codecs_table(input, report) + "\n" + auto_text(report);
    text += "ratio: bytes of the files by those in a part, footer and all. encode, decode: of one thread. pays below: bytes a second that storage takes of one node, where " + plural(input.threads, "thread") + " encode" + (input.threads == 1 ? "s" : "") + ".\n";
    if (knows_storage(input)) text += "durable: bytes of the files in a second, where storage takes " + format_rate(input.storage_bytes_per_s) + " of this node.\n";
    if (!report.merged.empty()) text += "\nImages that share runs:\n" + merged_table(input, report);
    if (!sample.unmerged.empty()) text += "\nNothing was merged: " + sample.unmerged + ".\n";
    if (!report.blocks.empty()) text += "\nLonger and shorter blocks:\n" + blocks_table(input, report);
    return text + "\n" + recommended_text(input, report);
}

Json codecs_json(const SampleFacts& sample, const SearchInput& input, const SearchReport& report) {
    Json changes = Json::object();
    for (const auto& [name, value] : report.changes) changes[name] = Json::parse(value);
    return {{"files", sample.files},
            {"files_left_out", sample.files_left_out},
            {"file_bytes", sample.file_bytes},
            {"bytes", sample.bytes},
            {"described_bytes", sample.described_bytes},
            {"images", sample.images},
            {"threads", input.threads},
            {"storage_bytes_per_s", knows_storage(input) ? Json(input.storage_bytes_per_s) : Json()},
            {"codecs", rows_json(input, report.codecs)},
            {"merged", rows_json(input, report.merged)},
            {"unmerged", sample.unmerged},
            {"blocks", rows_json(input, report.blocks)},
            {"recommended", {{"codec", report.codec}, {"merge_ranks", report.merge_ranks}, {"merge_bytes", report.merge_bytes}, {"block_bytes", report.block_bytes}, {"gain", report.gain}, {"is_refuted", report.is_refuted}, {"settings", std::move(changes)}}}};
}

}  // namespace cairn::cli
