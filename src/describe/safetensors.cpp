// safetensors: the length of a header, the header: JSON, a tensor's name to type, shape and range, and the tensors' bytes end to end (huggingface/safetensors, README, "Format").
#include <cstring>
#include <nlohmann/json.hpp>

#include "describe/file.hpp"
#include "describe/formats.hpp"

namespace cairn {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t header_bytes_max = 16 << 20;  // some 100,000 tensors; reading it takes some ten times as much memory

Status damaged(const std::string& what) { return Status(Code::corrupt, what); }

// How deep values lie in each other, without reading them: the format's own lie two deep, metadata among them.
bool is_shallow(std::string_view text) {
    int depth = 0;
    bool in_text = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_text) {
            if (c == '\\') ++i;
            else if (c == '"') in_text = false;
            continue;
        }
        if (c == '"') in_text = true;
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
        if (depth > 8) return false;
    }
    return true;
}

std::optional<DataType> type_of(const std::string& name) {
    struct Row {
        std::string_view name;
        DataType type;
    };
    static constexpr Row rows[] = {
        {"BOOL", DataType::u8}, {"U8", DataType::u8},   {"I8", DataType::i8},   {"F8_E5M2", DataType::u8}, {"F8_E4M3", DataType::u8}, {"F8_E8M0", DataType::u8}, {"I16", DataType::i16}, {"U16", DataType::u16},
        {"F16", DataType::f16}, {"BF16", DataType::bf16}, {"I32", DataType::i32}, {"U32", DataType::u32},    {"F32", DataType::f32},    {"C64", DataType::c64},    {"F64", DataType::f64}, {"I64", DataType::i64},
        {"U64", DataType::u64},
    };
    for (const Row& row : rows)
        if (row.name == name) return row.type;
    return std::nullopt;
}

// Nothing: what stands there is no tensor's entry.
std::optional<Extent> extent_of(const std::string& name, const Json& entry, std::uint64_t begin) {
    if (!entry.is_object()) return std::nullopt;
    const auto dtype = entry.find("dtype"), shape = entry.find("shape"), range = entry.find("data_offsets");
    if (dtype == entry.end() || shape == entry.end() || range == entry.end()) return std::nullopt;
    if (!dtype->is_string() || !shape->is_array() || !range->is_array() || range->size() != 2) return std::nullopt;
    if (!(*range)[0].is_number_unsigned() || !(*range)[1].is_number_unsigned()) return std::nullopt;
    const std::uint64_t from = (*range)[0], to = (*range)[1];
    if (from > to || from > UINT64_MAX - begin) return std::nullopt;
    Extent extent;
    extent.name = name;
    extent.offset = begin + from;
    extent.length = to - from;
    for (const Json& length : *shape) {
        if (!length.is_number_unsigned()) return std::nullopt;
        extent.shape.push_back(length);
    }
    const std::optional<DataType> type = type_of(dtype->get_ref<const std::string&>());
    if (type && bytes_of(*type, extent.shape) == extent.length) extent.type = *type;
    else extent.shape.assign(1, extent.length);  // a type of a newer release: data all the same
    return extent;
}

}  // namespace

bool is_safetensors(ByteView file) {
    std::uint64_t length = 0;
    if (file.size() < sizeof length + 2) return false;
    std::memcpy(&length, file.data(), sizeof length);
    return length >= 2 && length <= file.size() - sizeof length && file[sizeof length] == std::byte{'{'};
}

Result<std::vector<Extent>> describe_safetensors(ByteView file) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    if (length > header_bytes_max) return Status(Code::unsupported, "a header of " + std::to_string(length) + " bytes");
    const std::string_view text = as_text(file.subspan(sizeof length, length));
    if (!is_shallow(text)) return damaged("a header of too many levels");
    const Json header = Json::parse(text, nullptr, false);
    if (!header.is_object()) return damaged("a header that is not JSON");
    std::vector<Extent> extents;
    for (const auto& [name, entry] : header.items()) {
        if (name == "__metadata__") continue;
        std::optional<Extent> extent = extent_of(name, entry, sizeof length + length);
        if (!extent) return damaged("the entry of \"" + name.substr(0, 100) + "\" is none of a tensor");
        extents.push_back(std::move(*extent));
        if (extents.size() == 2 * extents_max) break;  // in the order of names: no use going on
    }
    return extents;
}

}  // namespace cairn
