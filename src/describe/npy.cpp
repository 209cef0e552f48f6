// NumPy's .npy: magic, version, the length of a header, the header: a Python dictionary of three keys, and the array (NEP 1; versions 1.0, 2.0, 3.0).
#include <charconv>

#include "describe/file.hpp"
#include "describe/formats.hpp"

namespace cairn {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t header_bytes_max = 64 << 10;  // NumPy itself reads 10,000 by default

Status damaged(const std::string& what) { return Status(Code::corrupt, what); }

// "<f8" and the like; nothing: another one, whose numbers nobody knows.
struct Kind {
    DataType type = DataType::bytes;
    bool is_big_endian = false;
};
std::optional<Kind> kind_of(std::string_view text) {
    if (text.size() < 3) return std::nullopt;
    struct Row {
        std::string_view name;
        DataType type;
    };
    static constexpr Row rows[] = {
        {"b1", DataType::u8},  {"i1", DataType::i8},  {"i2", DataType::i16}, {"i4", DataType::i32}, {"i8", DataType::i64}, {"u1", DataType::u8},  {"u2", DataType::u16},
        {"u4", DataType::u32}, {"u8", DataType::u64}, {"f2", DataType::f16}, {"f4", DataType::f32}, {"f8", DataType::f64}, {"c8", DataType::c64}, {"c16", DataType::c128},
        {"M8", DataType::i64}, {"m8", DataType::i64},
    };
    // Of times the unit follows: "<M8[ns]".
    const std::string_view name = text.substr(1, text.find('[') - 1);
    for (const Row& row : rows)
        if (row.name == name) return Kind{row.type, text.front() == '>'};
    return std::nullopt;
}

// The value of a key as it stands in the dictionary's text, up to what ends it.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
    std::size_t at = header.find("'" + std::string(key) + "'");
    if (at == std::string_view::npos) return std::nullopt;
    at = header.find(':', at);
    if (at == std::string_view::npos) return std::nullopt;
    at = header.find_first_not_of(' ', at + 1);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view rest = header.substr(at);
    const char ends = rest.front() == '(' ? ')' : ',';
    const std::size_t end = rest.find(ends);
    return end == std::string_view::npos ? std::nullopt : std::optional(rest.substr(0, ends == ')' ? end + 1 : end));
}

// "(4, 5)", "(4,)", "()".
std::optional<std::vector<std::uint64_t>> shape_of(std::string_view text) {
    if (text.size() < 2 || text.front() != '(' || text.back() != ')') return std::nullopt;
    std::vector<std::uint64_t> shape;
    const char* at = text.data() + 1;
    const char* const end = text.data() + text.size() - 1;
    while (at != end) {
        if (*at == ' ' || *at == ',' || *at == 'L') {  // Python 2 wrote 4L
            ++at;
            continue;
        }
        std::uint64_t length = 0;
        const auto [next, error] = std::from_chars(at, end, length);
        if (error != std::errc() || shape.size() >= 64) return std::nullopt;
        shape.push_back(length);
        at = next;
    }
    return shape;
}

}  // namespace

bool is_npy(ByteView file) { return as_text(file).starts_with(magic); }

Result<std::vector<Extent>> describe_npy(ByteView file) {
    const std::string_view text = as_text(file);
    if (text.size() < 12) return damaged("ends within its header");
    const auto byte = [&](std::size_t at) { return std::size_t(static_cast<unsigned char>(text[at])); };
    const bool is_first = byte(6) == 1;
    if (byte(6) < 1 || byte(6) > 3) return Status(Code::unsupported, "version " + std::to_string(byte(6)) + " of the format");
    const std::size_t begin = is_first ? 10 : 12;
    const std::size_t length = byte(8) | byte(9) << 8 | (is_first ? 0 : byte(10) << 16 | byte(11) << 24);
    if (length > header_bytes_max || length > text.size() - begin) return damaged("a header of " + std::to_string(length) + " bytes");
    const std::string_view header = text.substr(begin, length);
    const auto descr = value_of(header, "descr"), order = value_of(header, "fortran_order"), dimensions = value_of(header, "shape");
    if (!descr || !order || !dimensions) return damaged("a header without descr, fortran_order or shape");
    Extent extent;
    extent.offset = begin + length;
    std::optional<std::vector<std::uint64_t>> shape = shape_of(*dimensions);
    if (!shape) return damaged("a shape that is none");
    const bool is_quoted = descr->size() > 2 && descr->front() == '\'' && descr->back() == '\'';
    const std::optional<Kind> kind = is_quoted ? kind_of(descr->substr(1, descr->size() - 2)) : std::nullopt;
    if (!kind) {  // records of several fields, texts, objects: data all the same, but for Python's own objects
        if (descr->find('O') != std::string_view::npos) return std::vector<Extent>();
        extent.length = file.size() - extent.offset;
        extent.shape.push_back(extent.length);
        return std::vector<Extent>(1, std::move(extent));
    }
    if (order->starts_with("True")) {
        if (shape->size() > 1) extent.axes = ExtentAxes::reordered;
        shape = std::vector<std::uint64_t>(shape->rbegin(), shape->rend());
    }
    const std::optional<std::uint64_t> bytes = bytes_of(kind->type, *shape);
    if (!bytes || *bytes > file.size() - extent.offset) return damaged("an array that is longer than the file");
    extent.type = kind->type;
    extent.is_big_endian = kind->is_big_endian;
    extent.length = *bytes;
    extent.shape = std::move(*shape);
    return std::vector<Extent>(1, std::move(extent));
}

}  // namespace cairn
