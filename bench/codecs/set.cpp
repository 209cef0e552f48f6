#include "set.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "describe/file.hpp"
#include "describe/hdf5_signature.hpp"
#include "describe/similarity.hpp"
#include "describer/describer.hpp"

namespace cairn::bench {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds describer_wait{30};

struct Named {
    std::string pattern;
    std::uint32_t number = 0;
};
// For each run of digits in a name: the name without it, and its number.
std::vector<Named> numbers_in(const std::string& name) {
    std::vector<Named> found;
    for (std::size_t begin = 0, end = 0; begin < name.size(); begin = end + 1) {
        end = begin;
        while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) ++end;
        if (end > begin && end - begin < 10) found.push_back({name.substr(0, begin) + "#" + name.substr(end), static_cast<std::uint32_t>(std::stoul(name.substr(begin, end - begin)))});
    }
    return found;
}

void give_ranks(Set& set) {
    std::map<std::string, std::map<std::uint32_t, std::uint32_t>> by_pattern;  // the rank of each number
    for (const SetFile& file : set.files)
        for (const Named& named : numbers_in(file.name)) by_pattern[named.pattern].emplace(named.number, 0);
    const auto most = std::max_element(by_pattern.begin(), by_pattern.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    set.ranks = 1;
    if (most != by_pattern.end()) {
        set.ranks = 0;
        for (auto& [number, rank] : most->second) rank = set.ranks++;
        for (SetFile& file : set.files)
            for (const Named& named : numbers_in(file.name))
                if (named.pattern == most->first) file.rank = most->second[named.number];
    }
    std::sort(set.files.begin(), set.files.end(), [](const SetFile& a, const SetFile& b) { return std::tie(a.rank, a.name) < std::tie(b.rank, b.name); });
}

// SC12, Section III-A: group/variable, datatype, class. Shapes of equal classes may differ.
std::string key_of(const Extent& extent) {
    return similarity_key(extent, NameRule::groups) + (extent.shape.empty() ? " scalar" : " " + std::to_string(extent.shape.size()) + "-D");
}

// By offset, as plans want them; Cairn describes them so.
void describe(SetFile& file, const fs::path& path, Describer& describer, std::map<std::string, std::uint32_t>& keys) {
    Result<Description> description = hdf5_begins(file.bytes) ? describer.describe(path.string(), 0, file.bytes.size(), describer_wait) : describe_file(file.bytes);
    if (description.ok()) file.extents = description->extents;
    for (const Extent& extent : file.extents) file.keys.push_back(keys.emplace(key_of(extent), static_cast<std::uint32_t>(keys.size())).first->second);
    file.numbers = arrays_of(file.extents, NameRule::groups);
}

bool is_float(DataType type) { return type == DataType::f32 || type == DataType::f64; }

struct Shape {
    std::uint64_t row = 0, plane = 0, count = 0;
};
Shape shape_of(const Extent& extent) {
    Shape shape{1, 1, extent.length / std::max<std::uint64_t>(1, type_bytes(extent.type))};
    std::vector<std::uint64_t> axes = extent.shape;
    std::erase(axes, 1u);
    if (!axes.empty()) shape.row = axes.back();
    shape.plane = axes.size() > 1 ? shape.row * axes[axes.size() - 2] : shape.row;
    return shape;
}

// Arrays as they are where they stand whole; one array of rows where blocks of whole rows of one length stand in turn; else a line.
std::vector<Grid> grids_of(const std::vector<const SetFile*>& files, const StreamPlan& stream, std::uint64_t block_bytes) {
    std::vector<Grid> grids;
    bool are_whole = true;
    for (const Piece& piece : stream.pieces) are_whole = are_whole && piece.length == files[piece.file]->extents[piece.array].length;
    const Extent& first = files[stream.pieces[0].file]->extents[stream.pieces[0].array];
    const std::uint64_t width = type_bytes(first.type), row = shape_of(first).row;
    if (are_whole) {
        for (const Piece& piece : stream.pieces) {
            const Shape shape = shape_of(files[piece.file]->extents[piece.array]);
            const Grid grid{shape.row, shape.plane / shape.row, shape.count / shape.plane, 1};
            const bool is_like_last = !grids.empty() && grids.back().x == grid.x && grids.back().y == grid.y && grids.back().z == grid.z;
            if (is_like_last) ++grids.back().fields;
            else grids.push_back(grid);
        }
        return grids;
    }
    bool are_rows = row > 1 && block_bytes % (row * width) == 0;
    for (const Piece& piece : stream.pieces) are_rows = are_rows && shape_of(files[piece.file]->extents[piece.array]).row == row;
    const std::uint64_t count = stream.bytes / width;
    if (are_rows && count % row == 0) grids.push_back({row, count / row, 1, 1});
    else if (count > 0) grids.push_back({count, 1, 1, 1});
    return grids;
}

// Blocks of one key that follow each other are one array to Cairn's codecs, with rows where a block is whole rows.
void add_numbers(std::vector<NumberArray>& arrays, const SetFile& file, const Piece& piece, std::uint64_t at, const Layout& layout) {
    for (NumberArray array : within(file.numbers, piece.file_offset, piece.length)) {
        array.offset += at;
        const bool is_whole = piece.array != no_array && piece.length == file.extents[piece.array].length;
        if (is_blocked(layout.scheme) && !is_whole) {
            if (array.row == 0 || layout.block_bytes % (std::uint64_t{array.row} * array.width) != 0) array.row = 0;
            array.plane = 0;
            if (!arrays.empty() && layout.scheme == Scheme::aware_block) {
                NumberArray& last = arrays.back();
                if (last.key == array.key && last.width == array.width && last.row == array.row && last.offset + last.length == array.offset) {
                    last.length += array.length;
                    continue;
                }
            }
        }
        arrays.push_back(array);
    }
}

}  // namespace

std::uint64_t Set::bytes() const {
    std::uint64_t sum = 0;
    for (const SetFile& file : files) sum += file.bytes.size();
    return sum;
}

double processor_seconds() {
    timespec time = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Set read_set(const std::string& folder) {
    Set set;
    set.name = fs::path(folder).filename().string();
    if (set.name.empty()) set.name = fs::path(folder).parent_path().filename().string();
    std::map<std::string, std::uint32_t> keys;
    Describer describer(describer_program());
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file() || entry.file_size() == 0) continue;
        SetFile& file = set.files.emplace_back();
        file.name = fs::relative(entry.path(), folder).string();
        std::ifstream stream(entry.path(), std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(stream)), {});
        file.bytes = to_bytes(text);
        describe(file, entry.path(), describer, keys);
    }
    if (set.files.empty()) throw std::runtime_error(folder + ": no file with bytes");
    give_ranks(set);
    set.keys.resize(keys.size());
    for (const auto& [key, number] : keys) set.keys[number] = key;
    return set;
}

Layout layout_of(const Set& set, std::uint32_t first, std::uint32_t last, Scheme scheme, std::uint64_t block_bytes, bool is_padded) {
    Layout layout{scheme, is_blocked(scheme) ? block_bytes : 0, is_padded, {}};
    for (const SetFile& file : set.files) {
        if (file.rank < first || file.rank >= last) continue;
        FilePlace& place = layout.files.emplace_back();
        place.bytes = file.bytes.size();
        for (std::size_t i = 0; i < file.extents.size(); ++i) place.arrays.push_back({file.extents[i].offset, file.extents[i].length, file.keys[i]});
    }
    return layout;
}

MergedSet merge(const Set& set, std::uint32_t first, std::uint32_t last, const Layout& layout) {
    MergedSet merged;
    merged.layout = layout;
    std::vector<const SetFile*> files;
    for (const SetFile& file : set.files) {
        if (file.rank < first || file.rank >= last) continue;
        files.push_back(&file);
        merged.files.emplace_back(file.bytes);
    }
    merged.plan = plan_of(layout);
    merged.bytes.resize(merged_bytes(merged.plan));
    const double begun = processor_seconds();
    merge(merged.plan, merged.files, merged.bytes);
    merged.merge_s = processor_seconds() - begun;
    merged.views.bytes = merged.bytes;
    std::uint64_t at = 0;
    for (const StreamPlan& stream : merged.plan) {
        StreamView& view = merged.views.streams.emplace_back();
        view.bytes = ByteView(merged.bytes).subspan(at, stream.bytes);
        view.is_whole_files = !is_aware(layout.scheme);
        for (const Piece& piece : stream.pieces) {
            if (piece.array != no_array) view.largest_array = std::max(view.largest_array, layout.files[piece.file].arrays[piece.array].length);
            add_numbers(merged.views.arrays, *files[piece.file], piece, at + piece.stream_offset, layout);
        }
        const bool is_array = is_aware(layout.scheme) && !stream.is_skeleton && !stream.pieces.empty();
        if (is_array) {
            const Extent& extent = files[stream.pieces[0].file]->extents[stream.pieces[0].array];
            // Numbers of the other byte order are bytes to who computes with them.
            view.type = is_float(extent.type) && extent.is_big_endian ? DataType::bytes : extent.type;
            if (is_float(view.type)) view.grids = grids_of(files, stream, layout.block_bytes);
        } else if (!view.is_whole_files) {
            view.largest_array = stream.bytes;
        }
        merged.stream_bytes.push_back(stream.bytes);
        at += stream.bytes;
    }
    return merged;
}

}  // namespace cairn::bench
