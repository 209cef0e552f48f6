#include "measure.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>

namespace cairn::bench {

using Json = nlohmann::ordered_json;

namespace {

double seconds_of(const std::function<void()>& work) {
    const double begun = processor_seconds();
    work();
    return processor_seconds() - begun;
}
double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

Bytes small(ByteView raw) {
    Bytes stored(::ZSTD_compressBound(raw.size()));
    stored.resize(::ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(), 3));
    return stored;
}
Bytes large(ByteView stored, std::size_t bytes) {
    Bytes raw(bytes);
    if (::ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size()) != bytes) raw.clear();
    return raw;
}

// What went wrong ends it all, by name.
[[noreturn]] void fail(const Set& set, const Layout& layout, const std::string& pipeline, const std::string& what) {
    throw std::runtime_error(set.name + ", " + scheme_name(layout.scheme) + ", " + pipeline + ": " + what);
}

struct Sum {
    std::uint64_t stored = 0;
    double encode_s = 0, decode_s = 0;
};
struct Configuration {
    Scheme scheme;
    std::uint64_t block_bytes;
    std::uint32_t group;
    bool is_padded;
};

struct Passes {
    Sum one, two;
};

void damage(Bytes& stored) {
    if (!stored.empty()) stored[stored.size() * 2 / 3] ^= std::byte{1};
}

// A second pass over what the first has made; both ways are tried and compared.
Passes measure(const Set& set, const MergedSet& merged, const Pipeline& pipeline, const Plan& plan, bool has_second) {
    Passes passes;
    std::optional<Bytes> first;
    passes.one.encode_s = seconds_of([&] { first = encode(pipeline, merged.views, plan.options); });
    if (!first) fail(set, merged.layout, pipeline.name, "can not be encoded");
    passes.one.stored = first->size();
    if (plan.is_damaged) damage(*first);
    Bytes back(merged.bytes.size()), first_again(first->size());
    bool is_back = false;
    if (has_second) {
        Bytes second;
        passes.two.encode_s = passes.one.encode_s + seconds_of([&] { second = gzip_6(*first); });
        passes.two.stored = second.size();
        passes.two.decode_s = seconds_of([&] { is_back = gunzip(second, first_again); });
        if (!is_back || first_again != *first) fail(set, merged.layout, pipeline.name, "the second pass does not come back");
    }
    passes.one.decode_s = seconds_of([&] { is_back = decode(pipeline, *first, merged.stream_bytes, back); });
    passes.two.decode_s += passes.one.decode_s;
    if (!is_back || back != merged.bytes) fail(set, merged.layout, pipeline.name, "what was encoded does not come back");
    return passes;
}

// With all ranks' files from the streams again, which a layout must do that was stored, too. Gives its bytes, and the seconds to split.
std::pair<std::uint64_t, double> prove(const Set& set, const MergedSet& merged) {
    const Bytes raw = encode_layout(merged.layout), stored = small(raw);
    const std::optional<Layout> layout = decode_layout(large(stored, raw.size()));
    std::vector<ByteView> streams;
    for (const StreamView& stream : merged.views.streams) streams.push_back(stream.bytes);
    std::optional<std::vector<Bytes>> files;
    double seconds = 0;
    if (layout) files = split(*layout, streams);  // memory that is touched first costs more than all else
    files.reset();
    if (layout) seconds = seconds_of([&] { files = split(*layout, streams); });
    if (!files || files->size() != merged.files.size()) fail(set, merged.layout, "merging", "does not come back");
    for (std::size_t i = 0; i < files->size(); ++i)
        if (!std::equal(merged.files[i].begin(), merged.files[i].end(), (*files)[i].begin(), (*files)[i].end())) fail(set, merged.layout, "merging", "a file does not come back");
    return {stored.size(), seconds};
}

std::vector<const Pipeline*> wanted(const Plan& plan) {
    std::vector<const Pipeline*> found;
    for (const Pipeline& pipeline : pipelines()) {
        const bool is_named = plan.only.empty() || std::find(plan.only.begin(), plan.only.end(), pipeline.name) != plan.only.end();
        if (is_named && lacks(pipeline) == nullptr) found.push_back(&pipeline);
    }
    return found;
}

// The paper's own settings are tried with everything; others not with padded blocks, and with small groups at one block size. To schemes that know no types, all of the paper's are gzip, which is tried once.
bool is_tried(const Pipeline& pipeline, const Configuration& c, const Plan& plan, std::uint32_t largest) {
    if (pipeline.is_reference && pipeline.doubles != Method::gzip && !is_aware(c.scheme)) return false;
    if (pipeline.is_reference && pipeline.doubles != Method::fpzip_line && (c.group == largest || pipeline.doubles != Method::fpc_16)) return true;
    if (c.is_padded) return false;
    return plan.is_all || !is_blocked(c.scheme) || c.group == largest || c.block_bytes == plan.middle_block_bytes;
}

constexpr std::uint64_t padding_max = 4;  // times the bytes themselves; beyond it is no use and takes the memory

struct Sums {
    std::vector<Sum> one, two;  // of each repeat
};
struct Costs {
    std::uint64_t layout_bytes = 0;
    double merge_s = 0, split_s = 0;
};

Json row_of(const Set& set, const Configuration& c, const Pipeline& pipeline, int passes, const Costs& costs, const std::vector<Sum>& repeats) {
    std::vector<double> encode_s, decode_s;
    for (const Sum& sum : repeats) {
        encode_s.push_back(sum.encode_s);
        decode_s.push_back(sum.decode_s);
    }
    const std::uint64_t stored = repeats[0].stored + costs.layout_bytes;
    const auto bytes = static_cast<double>(set.bytes());
    return {{"scheme", scheme_name(c.scheme)}, {"block", is_blocked(c.scheme) ? c.block_bytes : 0}, {"group", c.group}, {"padded", c.is_padded},
            {"pipeline", pipeline.name}, {"passes", passes},
            {"stored", stored}, {"layout", costs.layout_bytes}, {"ratio", bytes / static_cast<double>(stored)}, {"encode_s", median(encode_s)}, {"decode_s", median(decode_s)},
            {"merge_s", costs.merge_s}, {"split_s", costs.split_s}, {"repeats", repeats.size()}};
}

// Adds what this group of ranks takes to the sums of each pipeline; gives what its merging costs, or nothing where it would be mostly padding.
std::optional<Costs> add_group(const Set& set, const Configuration& c, std::uint32_t first, const Plan& plan, std::uint32_t largest, std::map<const Pipeline*, Sums>& sums, int repeats) {
    const Layout layout = layout_of(set, first, first + c.group, c.scheme, c.block_bytes, c.is_padded);
    if (c.is_padded && merged_bytes(plan_of(layout)) > padding_max * set.bytes()) return std::nullopt;
    const MergedSet merged = merge(set, first, first + c.group, layout);
    const auto [layout_bytes, split_s] = prove(set, merged);
    for (const Pipeline* pipeline : wanted(plan)) {
        if (!is_tried(*pipeline, c, plan, largest)) continue;
        const bool has_second = lacks(Method::gzip) == nullptr && (pipeline->is_reference || c.group == largest || plan.is_all);
        Sums& all = sums[pipeline];
        all.one.resize(static_cast<std::size_t>(repeats));
        all.two.resize(has_second ? static_cast<std::size_t>(repeats) : 0);
        for (std::size_t i = 0; i < static_cast<std::size_t>(repeats); ++i) {
            const Passes passes = measure(set, merged, *pipeline, plan, has_second);
            const auto add = [&](Sum& sum, const Sum& one) { sum = {sum.stored + one.stored, sum.encode_s + one.encode_s, sum.decode_s + one.decode_s}; };
            add(all.one[i], passes.one);
            if (has_second) add(all.two[i], passes.two);
        }
    }
    return Costs{layout_bytes, merged.merge_s, split_s};
}

void measure_configuration(const Set& set, const Configuration& c, const Plan& plan, std::uint32_t largest, Json& rows) {
    std::map<const Pipeline*, Sums> sums;
    Costs costs;
    const int repeats = c.group == largest && !c.is_padded && (!is_blocked(c.scheme) || c.block_bytes == plan.middle_block_bytes) ? plan.repeats : 1;
    for (std::uint32_t first = 0; first < set.ranks; first += c.group) {
        const std::optional<Costs> one = add_group(set, c, first, plan, largest, sums, repeats);
        if (!one) return;
        costs = {costs.layout_bytes + one->layout_bytes, costs.merge_s + one->merge_s, costs.split_s + one->split_s};
    }
    for (const Pipeline* pipeline : wanted(plan)) {
        const auto found = sums.find(pipeline);
        if (found == sums.end()) continue;
        rows.push_back(row_of(set, c, *pipeline, 1, costs, found->second.one));
        if (!found->second.two.empty()) rows.push_back(row_of(set, c, *pipeline, 2, costs, found->second.two));
    }
}

std::string text_of(std::uint64_t lowest, std::uint64_t highest) { return std::to_string(lowest) + "-" + std::to_string(highest); }

}  // namespace

// SC12, Table III, and what Cairn sees.
Json facts_of(const Set& set) {
    std::vector<std::uint64_t> rank_bytes(set.ranks), rank_variables(set.ranks);
    std::map<std::string, std::uint64_t> variables, bytes_of;
    std::uint64_t described = 0, count = 0;
    for (const SetFile& file : set.files) {
        rank_bytes[file.rank] += file.bytes.size();
        rank_variables[file.rank] += file.extents.size();
        count += file.extents.size();
        for (const Extent& extent : file.extents) {
            const std::string type = extent.type == DataType::f64 ? "f64" : extent.type == DataType::f32 ? "f32" : "other";
            ++variables[type];
            bytes_of[type] += extent.length;
            described += extent.length;
        }
    }
    Json classes;
    for (const char* type : {"f64", "f32", "other"}) classes[type] = {{"variables", variables[type]}, {"bytes", bytes_of[type]}};
    const auto [least, most] = std::minmax_element(rank_bytes.begin(), rank_bytes.end());
    const auto [few, many] = std::minmax_element(rank_variables.begin(), rank_variables.end());
    return {{"processes", set.ranks}, {"files", set.files.size()}, {"bytes", set.bytes()}, {"rank_bytes", {*least, *most}}, {"variables", count}, {"rank_variables", text_of(*few, *many)},
            {"keys", set.keys.size()}, {"described", described}, {"classes", classes}};
}

Json rows_of(const Set& set, const Plan& plan) {
    Json rows = Json::array();
    std::vector<std::uint32_t> groups;
    for (const std::uint32_t group : plan.groups)
        if (group < set.ranks && !plan.is_largest_group_alone) groups.push_back(group);
    groups.push_back(set.ranks);
    for (const std::uint32_t group : groups) {
        for (const Scheme scheme : schemes) {
            if (!is_blocked(scheme)) measure_configuration(set, {scheme, 0, group, false}, plan, set.ranks, rows);
            else
                for (const std::uint64_t block : plan.block_bytes) {
                    measure_configuration(set, {scheme, block, group, false}, plan, set.ranks, rows);
                    if (group == set.ranks && !plan.is_largest_group_alone) measure_configuration(set, {scheme, block, group, true}, plan, set.ranks, rows);
                }
        }
    }
    return rows;
}

void export_set(const Set& set, const std::string& folder) {
    const Layout layout = layout_of(set, 0, set.ranks, Scheme::aware, 0, false);
    const MergedSet merged = merge(set, 0, set.ranks, layout);
    Json streams = Json::array();
    std::uint64_t at = 0;
    std::vector<const SetFile*> files;
    for (const SetFile& file : set.files) files.push_back(&file);
    for (std::size_t i = 0; i < merged.plan.size(); ++i) {
        const StreamPlan& stream = merged.plan[i];
        Json arrays = Json::array();
        const Extent* first = nullptr;
        for (const Piece& piece : stream.pieces) {
            if (stream.is_skeleton) break;
            const Extent& extent = files[piece.file]->extents[piece.array];
            if (first == nullptr) first = &extent;
            arrays.push_back({{"shape", extent.shape}, {"length", extent.length}});
        }
        streams.push_back({{"key", stream.is_skeleton ? "" : set.keys[stream.key]}, {"type", first == nullptr ? "bytes" : type_name(first->type)}, {"big_endian", first != nullptr && first->is_big_endian},
                           {"offset", at}, {"length", stream.bytes}, {"arrays", arrays}});
        at += stream.bytes;
    }
    // What is in no array is the same for everybody: zstd at level 1.
    Bytes skeleton, back(merged.views.streams[0].bytes.size());
    const double encode_s = seconds_of([&] { encode(Method::zstd, merged.views.streams[0], skeleton); });
    const double decode_s = seconds_of([&] { decode(Method::zstd, skeleton, back); });
    const std::filesystem::path base = std::filesystem::path(folder) / set.name;
    std::ofstream(base.string() + ".bin", std::ios::binary).write(reinterpret_cast<const char*>(merged.bytes.data()), static_cast<std::streamsize>(merged.bytes.size()));
    std::ofstream(base.string() + ".json") << Json{{"name", set.name}, {"bytes", set.bytes()}, {"layout", small(encode_layout(layout)).size()},
                                                    {"skeleton", {{"stored", skeleton.size()}, {"encode_s", encode_s}, {"decode_s", decode_s}}}, {"streams", streams}}.dump();
}

}  // namespace cairn::bench
