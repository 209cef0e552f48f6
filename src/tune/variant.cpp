#include "tune/variant.hpp"

#include <algorithm>

#include "base/text_table.hpp"
#include "base/units.hpp"

namespace cairn::tune {

namespace {

constexpr const char* placement_names[] = {"append", "interleaved", "contiguous"};
constexpr const char* split_names[] = {"chunks", "files"};

}  // namespace

std::uint64_t level(const Variant& v, Factor factor) {
    switch (factor) {
        case Factor::writers: return v.writers;
        case Factor::placement: return static_cast<std::uint64_t>(v.placement);
        case Factor::local_split: return static_cast<std::uint64_t>(v.local_split);
        case Factor::files: return v.files;
        case Factor::buffer_bytes: return v.buffer_bytes;
        case Factor::block_bytes: return v.block_bytes;
        case Factor::direct: return v.direct;
        case Factor::uring: return v.uring;
    }
    return 0;
}

void set_level(Variant& v, Factor factor, std::uint64_t value) {
    switch (factor) {
        case Factor::writers: v.writers = static_cast<std::uint32_t>(value); break;
        case Factor::placement: v.placement = static_cast<Placement>(value); break;
        case Factor::local_split: v.local_split = static_cast<LocalSplit>(value); break;
        case Factor::files: v.files = static_cast<std::uint32_t>(value); break;
        case Factor::buffer_bytes: v.buffer_bytes = value; break;
        case Factor::block_bytes: v.block_bytes = value; break;
        case Factor::direct: v.direct = value != 0; break;
        case Factor::uring: v.uring = value != 0; break;
    }
}

std::string level_text(Factor factor, std::uint64_t value) {
    switch (factor) {
        case Factor::writers:
        case Factor::files: return std::to_string(value);
        case Factor::placement: return placement_names[value];
        case Factor::local_split: return split_names[value];
        case Factor::buffer_bytes:
        case Factor::block_bytes: return format_bytes_exact(value);
        case Factor::direct: return value != 0 ? "on" : "off";
        case Factor::uring: return value != 0 ? "io_uring" : "threads";
    }
    return {};
}

std::string factor_text(Factor factor) {
    switch (factor) {
        case Factor::writers: return "writers";
        case Factor::placement: return "placement";
        case Factor::local_split: return "local split";
        case Factor::files: return "files";
        case Factor::buffer_bytes: return "buffer";
        case Factor::block_bytes: return "block";
        case Factor::direct: return "direct I/O";
        case Factor::uring: return "I/O";
    }
    return {};
}

std::string setting_name(Factor factor) {
    switch (factor) {
        case Factor::writers: return "flush.writers";
        case Factor::placement: return "flush.placement";
        case Factor::local_split: return "flush.local_split";
        case Factor::files: return "";
        case Factor::buffer_bytes: return "flush.buffer_bytes";
        case Factor::block_bytes: return "flush.block_bytes";
        case Factor::direct: return "flush.direct";
        case Factor::uring: return "flush.io";
    }
    return {};
}

std::string setting_value(Factor factor, std::uint64_t value) {
    switch (factor) {
        case Factor::writers:
        case Factor::files: return std::to_string(value);
        case Factor::direct: return value != 0 ? "true" : "false";
        case Factor::uring: return value != 0 ? "\"uring\"" : "\"threads\"";
        default: return "\"" + level_text(factor, value) + "\"";
    }
}

namespace {

// One level in words that need no title.
std::string phrase(Factor factor, std::uint64_t value) {
    switch (factor) {
        case Factor::writers: return plural(value, "writer");
        case Factor::files: return plural(value, "file");
        case Factor::placement: return level_text(factor, value);
        case Factor::local_split: return value == 0 ? "local data by chunks" : "local data by files";
        case Factor::buffer_bytes: return "buffers of " + level_text(factor, value);
        case Factor::block_bytes: return "blocks of " + level_text(factor, value);
        case Factor::direct: return value != 0 ? "direct I/O" : "through the page cache";
        case Factor::uring: return level_text(factor, value);
    }
    return {};
}

}  // namespace

std::vector<Factor> differences(const Variant& variant, const Variant& present) {
    std::vector<Factor> found;
    for (const Factor factor : factors)
        if (level(variant, factor) != level(present, factor)) found.push_back(factor);
    return found;
}

std::string difference_text(const Variant& variant, const Variant& present) {
    std::string text;
    for (const Factor factor : differences(variant, present)) text += (text.empty() ? "" : ", ") + phrase(factor, level(variant, factor));
    return text.empty() ? "as it is" : text;
}

std::string whole_text(const Variant& variant) {
    std::string text;
    for (const Factor factor : factors) text += (text.empty() ? "" : ", ") + phrase(factor, level(variant, factor));
    return text;
}

Variant normal(Variant variant) {
    variant.writers = std::max(1u, variant.writers / variant.files) * variant.files;
    variant.buffer_bytes = std::max(variant.block_bytes, variant.buffer_bytes / variant.block_bytes * variant.block_bytes);
    return variant;
}

Variant variant_of(const Settings& settings, bool uring) {
    Variant variant;
    variant.writers = settings.flush.writers;
    variant.placement = static_cast<Placement>(settings.flush.placement);
    variant.local_split = static_cast<LocalSplit>(settings.flush.local_split);
    variant.buffer_bytes = settings.flush.buffer_bytes;
    variant.block_bytes = settings.flush.block_bytes;
    variant.direct = settings.flush.direct;
    variant.uring = settings.flush.io == Settings::Io::automatic ? uring : settings.flush.io == Settings::Io::uring;
    return variant;
}

}  // namespace cairn::tune
