#include "merging.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "codecs/varint.hpp"

namespace cairn::bench {

namespace {

struct Range {
    std::uint64_t offset, length;
};
// What one file puts into a stream: an array, all that is in none, or the whole file.
struct Part {
    std::uint32_t file, array;
    std::uint64_t bytes;
    std::vector<Range> ranges;  // of the file
};
struct Source {
    bool is_skeleton;
    std::uint32_t key;
    std::vector<Part> parts;
};

Part skeleton_of(const FilePlace& file, std::uint32_t index) {
    Part part{index, no_array, 0, {}};
    std::uint64_t at = 0;
    const auto add = [&](std::uint64_t end) {
        if (end > at) part.ranges.push_back({at, end - at});
        part.bytes += end - at;
    };
    for (const ArrayPlace& array : file.arrays) {
        add(array.offset);
        at = array.offset + array.length;
    }
    add(file.bytes);
    return part;
}

std::vector<Source> sources_of(const Layout& layout) {
    std::vector<Source> sources(1);
    sources[0].is_skeleton = is_aware(layout.scheme);
    std::map<std::uint32_t, std::vector<Part>> by_key;
    for (std::uint32_t i = 0; i < layout.files.size(); ++i) {
        const FilePlace& file = layout.files[i];
        if (!is_aware(layout.scheme)) {
            sources[0].parts.push_back({i, no_array, file.bytes, {{0, file.bytes}}});
            continue;
        }
        sources[0].parts.push_back(skeleton_of(file, i));
        for (std::uint32_t n = 0; n < file.arrays.size(); ++n) by_key[file.arrays[n].key].push_back({i, n, file.arrays[n].length, {{file.arrays[n].offset, file.arrays[n].length}}});
    }
    for (auto& [key, parts] : by_key) sources.push_back({false, key, std::move(parts)});
    return sources;
}

// A part that is read on and on, a block at a time.
struct Reading {
    const Part* part;
    std::size_t range = 0;
    std::uint64_t in_range = 0, left = 0;
};

void take(Reading& reading, std::uint64_t bytes, StreamPlan& into) {
    reading.left -= bytes;
    while (bytes > 0) {
        const Range& range = reading.part->ranges[reading.range];
        const std::uint64_t length = std::min(bytes, range.length - reading.in_range);
        into.pieces.push_back({reading.part->file, reading.part->array, range.offset + reading.in_range, length, into.bytes});
        into.bytes += length;
        bytes -= length;
        reading.in_range += length;
        if (reading.in_range == range.length) {
            ++reading.range;
            reading.in_range = 0;
        }
    }
}

StreamPlan plan_of(const Source& source, const Layout& layout) {
    StreamPlan plan{source.is_skeleton, source.key};
    const std::uint64_t block = is_blocked(layout.scheme) ? layout.block_bytes : UINT64_MAX;
    std::vector<Reading> readings;
    for (const Part& part : source.parts) readings.push_back({&part, 0, 0, part.bytes});
    while (!readings.empty()) {
        for (Reading& reading : readings) {
            const std::uint64_t bytes = std::min(block, reading.left);
            take(reading, bytes, plan);
            if (layout.is_padded && bytes > 0 && bytes < block) plan.bytes += block - bytes;
        }
        std::erase_if(readings, [](const Reading& reading) { return reading.left == 0; });
    }
    return plan;
}

}  // namespace

const char* scheme_name(Scheme scheme) {
    constexpr const char* names[] = {"agnostic", "agnostic-block", "aware", "aware-block"};
    return names[static_cast<std::size_t>(scheme)];
}

std::vector<StreamPlan> plan_of(const Layout& layout) {
    std::vector<StreamPlan> plan;
    for (const Source& source : sources_of(layout)) plan.push_back(plan_of(source, layout));
    return plan;
}

std::uint64_t merged_bytes(const std::vector<StreamPlan>& plan) {
    std::uint64_t bytes = 0;
    for (const StreamPlan& stream : plan) bytes += stream.bytes;
    return bytes;
}

// Numbers in 7 bits a byte: scheme, block, padded, files; of each file its bytes and arrays; of each array (of the aware schemes) the gap before it, its length, its key.
Bytes encode_layout(const Layout& layout) {
    Bytes bytes;
    put(bytes, static_cast<std::uint64_t>(layout.scheme));
    put(bytes, layout.block_bytes);
    put(bytes, layout.is_padded ? 1 : 0);
    put(bytes, layout.files.size());
    for (const FilePlace& file : layout.files) {
        put(bytes, file.bytes);
        if (!is_aware(layout.scheme)) continue;
        put(bytes, file.arrays.size());
        std::uint64_t at = 0;
        for (const ArrayPlace& array : file.arrays) {
            put(bytes, array.offset - at);
            put(bytes, array.length);
            put(bytes, array.key);
            at = array.offset + array.length;
        }
    }
    return bytes;
}

std::optional<Layout> decode_layout(ByteView bytes) {
    Numbers numbers(bytes);
    Layout layout;
    const std::uint64_t scheme = numbers.next();
    if (scheme > 3) return std::nullopt;
    layout.scheme = static_cast<Scheme>(scheme);
    layout.block_bytes = numbers.next();
    layout.is_padded = numbers.next() == 1;
    const std::uint64_t files = numbers.next();
    if (files > bytes.size() || (is_blocked(layout.scheme) && layout.block_bytes == 0)) return std::nullopt;
    for (std::uint64_t i = 0; i < files && numbers.ok(); ++i) {
        FilePlace file{numbers.next(), {}};
        const std::uint64_t arrays = is_aware(layout.scheme) ? numbers.next() : 0;
        if (arrays > bytes.size()) return std::nullopt;
        std::uint64_t at = 0;
        for (std::uint64_t n = 0; n < arrays && numbers.ok(); ++n) {
            const std::uint64_t gap = numbers.next(), length = numbers.next(), key = numbers.next();
            if (gap > file.bytes - at || length > file.bytes - at - gap || key >= no_array) return std::nullopt;
            file.arrays.push_back({at + gap, length, static_cast<std::uint32_t>(key)});
            at += gap + length;
        }
        layout.files.push_back(std::move(file));
    }
    if (!numbers.ok() || !numbers.at_end()) return std::nullopt;
    return layout;
}

void merge(const std::vector<StreamPlan>& plan, std::span<const ByteView> files, std::span<std::byte> into) {
    std::uint64_t at = 0;
    for (const StreamPlan& stream : plan) {
        for (const Piece& piece : stream.pieces) std::memcpy(into.data() + at + piece.stream_offset, files[piece.file].data() + piece.file_offset, piece.length);
        at += stream.bytes;
    }
}

std::optional<std::vector<Bytes>> split(const Layout& layout, std::span<const ByteView> streams) {
    const std::vector<StreamPlan> plan = plan_of(layout);
    if (plan.size() != streams.size()) return std::nullopt;
    std::vector<Bytes> files;
    for (const FilePlace& file : layout.files) files.emplace_back(file.bytes);
    for (std::size_t i = 0; i < plan.size(); ++i) {
        if (streams[i].size() != plan[i].bytes) return std::nullopt;
        for (const Piece& piece : plan[i].pieces) std::memcpy(files[piece.file].data() + piece.file_offset, streams[i].data() + piece.stream_offset, piece.length);
    }
    return files;
}

}  // namespace cairn::bench
