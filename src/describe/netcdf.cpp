// netCDF's classic formats: a header of dimensions, attributes and variables, then the variables one after the other, then the records: of each variable along the
// unlimited dimension one slab a record. Everything is big endian. CDF-1 has offsets of 32 bits, CDF-2 of 64, CDF-5 lengths of 64 too (NetCDF User's Guide, "File Format
// Specifications"; for CDF-5 PnetCDF's "CDF-5 file format specification"). HDF5 is the format of netCDF-4, and not this.
#include <algorithm>
#include <optional>

#include "describe/cursor.hpp"
#include "describe/file.hpp"
#include "describe/formats.hpp"

namespace cairn {

namespace {

constexpr std::size_t netcdf_axes_max = 32, netcdf_name_bytes_max = 256;  // each record's extent has them; the format's own bounds are 1024 and 256
constexpr std::uint64_t netcdf_dimensions = 10, netcdf_variables = 11, netcdf_attributes = 12;

// By the number that stands for it.
struct NetcdfType {
    DataType type = DataType::bytes;
    std::uint64_t bytes = 0;
};
constexpr NetcdfType netcdf_types[] = {
    {},                    {DataType::i8, 1}, {DataType::bytes, 1}, {DataType::i16, 2}, {DataType::i32, 4}, {DataType::f32, 4},
    {DataType::f64, 8},    {DataType::u8, 1}, {DataType::u16, 2},   {DataType::u32, 4}, {DataType::i64, 8}, {DataType::u64, 8},
};
constexpr std::uint64_t netcdf_char = 2;  // text, which is no extent

struct NetcdfVariable {
    std::string name;
    std::uint64_t type = 0, begin = 0;
    bool is_record = false;
    std::vector<std::uint64_t> shape;  // without the records
    std::optional<std::uint64_t> bytes;  // of it, or of its part of a record; nothing: more than can be
};

struct NetcdfHeader {
    unsigned number_bytes = 4, offset_bytes = 4;
    std::uint64_t records = 0;
    bool is_streamed = false;  // who wrote it did not come back to say how many records there are
    std::vector<std::uint64_t> dimensions;  // 0: the unlimited one
    std::vector<NetcdfVariable> variables;
    std::uint64_t end = 0;
};

// Reads a header in the order in which it stands. Nothing is reserved for a count before what it counts is there.
class NetcdfReader {
  public:
    explicit NetcdfReader(ByteView file) : cursor_(file) {}
    Result<NetcdfHeader> read();

  private:
    std::uint64_t number() { return cursor_.big(header_.number_bytes); }
    std::string_view name();
    std::optional<std::uint64_t> list_of(std::uint64_t what);
    bool dimensions();
    bool attributes();
    bool variables();
    bool variable();

    Cursor cursor_;
    NetcdfHeader header_;
};

Result<NetcdfHeader> NetcdfReader::read() {
    cursor_.skip(3);
    const std::uint64_t version = cursor_.big(1);
    header_.number_bytes = version == 5 ? 8 : 4;
    header_.offset_bytes = version == 1 ? 4 : 8;
    header_.records = number();
    header_.is_streamed = header_.records == (version == 5 ? UINT64_MAX : UINT32_MAX);
    if (!dimensions()) return corrupt("its list of dimensions");
    if (!attributes()) return corrupt("its list of attributes");
    if (!variables()) return corrupt("variable " + std::to_string(header_.variables.size()));
    header_.end = cursor_.at();
    return std::move(header_);
}

std::string_view NetcdfReader::name() {
    const std::uint64_t length = number();
    const std::string_view text = cursor_.text(length);
    cursor_.skip((4 - length % 4) % 4);
    return text;
}

// How many there are; nothing where another list begins, or none.
std::optional<std::uint64_t> NetcdfReader::list_of(std::uint64_t what) {
    const std::uint64_t tag = cursor_.big(4), count = number();
    if (!cursor_.ok() || (tag != what && (tag != 0 || count != 0))) return std::nullopt;
    return count;
}

bool NetcdfReader::dimensions() {
    const std::optional<std::uint64_t> count = list_of(netcdf_dimensions);
    for (std::uint64_t i = 0; count && i < *count && cursor_.ok(); ++i) {
        name();
        header_.dimensions.push_back(number());
    }
    return count && cursor_.ok();
}

bool NetcdfReader::attributes() {
    const std::optional<std::uint64_t> count = list_of(netcdf_attributes);
    for (std::uint64_t i = 0; count && i < *count && cursor_.ok(); ++i) {
        name();
        const std::uint64_t type = cursor_.big(4), values = number();
        std::uint64_t bytes = 0;
        if (type == 0 || type >= std::size(netcdf_types) || __builtin_mul_overflow(values, netcdf_types[type].bytes, &bytes)) return false;
        cursor_.skip(bytes);
        cursor_.skip((4 - bytes % 4) % 4);
    }
    return count && cursor_.ok();
}

bool NetcdfReader::variables() {
    const std::optional<std::uint64_t> count = list_of(netcdf_variables);
    for (std::uint64_t i = 0; count && i < *count && cursor_.ok(); ++i)
        if (!variable()) return false;
    return count && cursor_.ok();
}

// Its size is what its dimensions make: what is written of it has 32 bits, and is too small for large ones.
bool NetcdfReader::variable() {
    NetcdfVariable variable;
    variable.name = name().substr(0, netcdf_name_bytes_max);
    const std::uint64_t axes = number();
    std::uint64_t numbers = 1;
    bool is_too_large = false;
    for (std::uint64_t axis = 0; axis < axes && cursor_.ok(); ++axis) {
        const std::uint64_t dimension = number();
        if (!cursor_.ok() || dimension >= header_.dimensions.size()) return false;
        const std::uint64_t length = header_.dimensions[dimension];
        if (axis == 0 && length == 0) {
            variable.is_record = true;
            continue;
        }
        is_too_large |= __builtin_mul_overflow(numbers, length, &numbers);
        if (variable.shape.size() <= netcdf_axes_max) variable.shape.push_back(length);
    }
    if (!cursor_.ok() || !attributes()) return false;
    variable.type = cursor_.big(4);
    number();
    variable.begin = cursor_.big(header_.offset_bytes);
    if (!cursor_.ok() || variable.type == 0 || variable.type >= std::size(netcdf_types)) return false;
    std::uint64_t bytes = 0;
    if (!__builtin_mul_overflow(numbers, netcdf_types[variable.type].bytes, &bytes) && !is_too_large) variable.bytes = bytes;
    header_.variables.push_back(std::move(variable));
    return true;
}

// Nothing for text, for what has more axes than anybody wants to know, and for what would lie in the header.
std::optional<Extent> netcdf_extent(const NetcdfHeader& header, const NetcdfVariable& variable) {
    if (variable.type == netcdf_char || !variable.bytes || *variable.bytes == 0 || variable.shape.size() > netcdf_axes_max || variable.begin < header.end) return std::nullopt;
    Extent extent;
    extent.name = variable.name;
    extent.type = netcdf_types[variable.type].type;
    extent.is_big_endian = netcdf_types[variable.type].bytes > 1;
    extent.shape = variable.shape;
    extent.offset = variable.begin;
    extent.length = *variable.bytes;
    return extent;
}

struct NetcdfRecords {
    std::uint64_t count = 0, bytes = 0, begin = UINT64_MAX;  // of one: with what fills each variable's part up to 4 bytes
    std::vector<const NetcdfVariable*> variables;
};

// Nothing where records have no size. A file that ends before the last record has those before it, and the beginning of one.
std::optional<NetcdfRecords> netcdf_records(const NetcdfHeader& header, std::uint64_t file_bytes) {
    NetcdfRecords records;
    for (const NetcdfVariable& variable : header.variables) {
        if (!variable.is_record) continue;
        if (!variable.bytes || *variable.bytes > file_bytes) return std::nullopt;
        if (__builtin_add_overflow(records.bytes, round_up(*variable.bytes, 4), &records.bytes)) return std::nullopt;
        records.begin = std::min(records.begin, variable.begin);
        records.variables.push_back(&variable);
    }
    if (records.variables.empty() || records.begin < header.end || records.begin >= file_bytes) return std::nullopt;
    // One alone is not filled up.
    if (records.variables.size() == 1) records.bytes = *records.variables.front()->bytes;
    if (records.bytes == 0) return std::nullopt;
    const std::uint64_t fit = div_up(file_bytes - records.begin, records.bytes);
    records.count = header.is_streamed ? fit : std::min(header.records, fit);
    return records;
}

// Of one variable alone all records are one array; of several each record's part is one, since others lie between.
void add_records(const NetcdfHeader& header, const NetcdfRecords& records, std::uint64_t file_bytes, std::vector<Extent>& extents) {
    if (records.variables.size() == 1) {
        std::optional<Extent> extent = netcdf_extent(header, *records.variables.front());
        const std::uint64_t whole = std::min(records.count, (file_bytes - records.begin) / records.bytes);
        if (!extent || whole == 0) return;
        extent->shape.insert(extent->shape.begin(), whole);
        extent->length *= whole;
        extents.push_back(std::move(*extent));
        return;
    }
    std::vector<Extent> parts;
    for (const NetcdfVariable* variable : records.variables)
        if (std::optional<Extent> part = netcdf_extent(header, *variable)) parts.push_back(std::move(*part));
    for (std::uint64_t record = 0; !parts.empty() && record < records.count; ++record)
        for (const Extent& part : parts) {
            if (extents.size() >= extents_max) return;
            Extent& extent = extents.emplace_back(part);
            extent.name += "[" + std::to_string(record) + "]";
            if (__builtin_add_overflow(part.offset, record * records.bytes, &extent.offset)) return extents.pop_back();
        }
}

}  // namespace

bool is_netcdf(ByteView file) {
    const std::string_view text = as_text(file);
    return text.starts_with("CDF") && text.size() > 3 && (text[3] == 1 || text[3] == 2 || text[3] == 5);
}

Result<std::vector<Extent>> describe_netcdf(ByteView file) {
    TRY_ASSIGN(const NetcdfHeader header, NetcdfReader(file).read());
    std::vector<Extent> extents;
    for (const NetcdfVariable& variable : header.variables)
        if (std::optional<Extent> extent = netcdf_extent(header, variable); extent && !variable.is_record && extents.size() < extents_max) extents.push_back(std::move(*extent));
    if (const std::optional<NetcdfRecords> records = netcdf_records(header, file.size())) add_records(header, *records, file.size(), extents);
    return extents;
}

}  // namespace cairn
