#include "format/safetensors.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/units.hpp"
#include "model/tensor_places.hpp"

namespace cairn {

namespace {

using Json = nlohmann::json;

constexpr std::string_view own_prefix = "cairn//", rank_mark = "//rank";
constexpr std::uint64_t number_bytes_max = 20, rank_bytes_max = 8;  // in decimal

// As the format names it, and how many of its numbers one of the region's is.
struct TypeName {
    std::string_view name;
    std::uint32_t numbers = 1;
};
TypeName name_of(DataType type) {
    switch (type) {
        case DataType::bytes: case DataType::u8: return {"U8"};
        case DataType::i8: return {"I8"};
        case DataType::i16: return {"I16"};
        case DataType::u16: return {"U16"};
        case DataType::i32: return {"I32"};
        case DataType::u32: return {"U32"};
        case DataType::i64: return {"I64"};
        case DataType::u64: return {"U64"};
        case DataType::f16: return {"F16"};
        case DataType::bf16: return {"BF16"};
        case DataType::f32: return {"F32"};
        case DataType::f64: return {"F64"};
        case DataType::c64: return {"F32", 2};
        case DataType::c128: return {"F64", 2};
    }
    return {"U8"};
}

// With what JSON puts before some characters of it.
std::string quoted_name(std::string_view name) { return Json(std::string(name)).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::uint64_t entry_bytes_max(std::string_view name, std::size_t dimensions) {
    constexpr std::string_view fixed = R"(,:{"dtype":"BF16","shape":[],"data_offsets":[,]})";
    return quoted_name(name).size() + rank_mark.size() + rank_bytes_max + fixed.size() + (dimensions + 1) * (number_bytes_max + 1) + 2 * number_bytes_max;
}
std::uint64_t own_entry_bytes_max() { return entry_bytes_max(own_prefix, 1) + rank_bytes_max + 1 + number_bytes_max; }

// What a header says, entry by entry, in the order of the data.
class Entries {
  public:
    void add(std::string_view name, std::string_view type, const std::vector<std::uint64_t>& shape, std::uint64_t bytes) {
        std::string extents;
        for (const std::uint64_t extent : shape) extents += (extents.empty() ? "" : ",") + std::to_string(extent);
        text_ += (text_.empty() ? "{" : ",") + quoted_name(name) + ":{\"dtype\":\"" + std::string(type) + "\",\"shape\":[" + extents + "],\"data_offsets\":[" + std::to_string(at_) + ",";
        text_ += std::to_string(at_ += bytes) + "]}";
    }
    // What lies up to there, if anything, and is no region's.
    void own_to(std::uint64_t end, Rank rank) {
        if (end <= at_) return;
        if (rank != rank_) rank_ = rank, number_ = 0;
        const std::uint64_t bytes = end - at_;
        add(std::string(own_prefix) + std::to_string(rank) + "." + std::to_string(number_++), "U8", {bytes}, bytes);
    }
    std::uint64_t at() const { return at_; }
    std::string take() { return text_.empty() ? "{}" : std::move(text_) + "}"; }

  private:
    std::string text_;
    std::uint64_t at_ = 0;  // in the data
    Rank rank_ = UINT32_MAX;
    std::uint64_t number_ = 0;  // of the rank's own
};

void add_region(Entries& entries, const Region& region, const std::string& name) {
    const TypeName type = name_of(region.type);
    std::vector<std::uint64_t> shape = region.shape;
    if (type.numbers > 1) shape.push_back(type.numbers);
    entries.add(name, type.name, shape, region.length);
}

// Of regions that several images have.
std::set<std::string_view> shared_names(const std::vector<TensorImage>& images) {
    std::set<std::string_view> seen, shared = {"__metadata__"};  // which the format has for itself
    for (const TensorImage& image : images)
        for (const Region& region : image.regions)
            if (!seen.insert(region.name).second) shared.insert(region.name);
    return shared;
}

// "cairn//rank3" is a region's.
bool is_own(std::string_view name) { return name.starts_with(own_prefix) && name.size() > own_prefix.size() && name[own_prefix.size()] >= '0' && name[own_prefix.size()] <= '9'; }

}  // namespace

std::uint64_t tensors_naming_bytes(const std::vector<Region>& regions) {
    std::uint64_t bytes = 2 * own_entry_bytes_max(), end = 0;  // the way to the image, and its region index
    for (const Region& region : regions) {
        if (region.offset != end) bytes += own_entry_bytes_max();
        bytes += entry_bytes_max(region.name, region.shape.size());
        end = region.offset + region.length;
    }
    return bytes;
}

Result<Bytes> encode_safetensors_header(const std::vector<TensorImage>& images, std::uint64_t header_bytes) {
    const std::set<std::string_view> shared = shared_names(images);
    Entries entries;
    for (const TensorImage& image : images) {
        entries.own_to(image.begin, image.rank);
        for (const Region& region : image.regions) {
            const std::uint64_t begin = image.begin + region.offset;
            if (begin < entries.at()) continue;  // it lies over the one before it, so it can not be a tensor of its own
            entries.own_to(begin, image.rank);
            add_region(entries, region, shared.count(region.name) ? region.name + std::string(rank_mark) + std::to_string(image.rank) : region.name);
        }
        entries.own_to(image.begin + image.bytes, image.rank);
    }
    std::string json = entries.take();
    if (header_bytes < 8 || json.size() > header_bytes - 8)
        return Status(Code::internal, "the header of a safetensors file needs " + std::to_string(json.size() + 8) + " bytes, and has " + std::to_string(header_bytes));
    json.resize(header_bytes - 8, ' ');
    Bytes header(8);
    for (std::size_t i = 0; i < header.size(); ++i) header[i] = static_cast<std::byte>(json.size() >> (8 * i));
    header.insert(header.end(), as_bytes(json).begin(), as_bytes(json).end());
    return header;
}

Result<std::uint64_t> safetensors_header_length(ByteView first_eight) {
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < 8 && i < first_eight.size(); ++i) length |= static_cast<std::uint64_t>(first_eight[i]) << (8 * i);
    if (first_eight.size() < 8 || length < 2 || length > tensors_header_bytes_max) return corrupt("a safetensors header of " + std::to_string(length) + " bytes");
    return length;
}

Result<std::vector<std::pair<std::string, std::uint64_t>>> decode_safetensors_names(ByteView json) {
    const char* const begin = reinterpret_cast<const char*>(json.data());
    const Json header = Json::parse(begin, begin + json.size(), nullptr, false);
    if (!header.is_object()) return corrupt("a safetensors header that is not JSON");
    std::vector<std::pair<std::string, std::uint64_t>> names;
    for (const auto& [name, entry] : header.items()) {
        if (is_own(name) || !entry.is_object()) continue;
        const auto range = entry.find("data_offsets");
        if (range == entry.end() || !range->is_array() || range->size() != 2 || !(*range)[0].is_number_unsigned() || !(*range)[1].is_number_unsigned()) continue;
        names.emplace_back(name, (*range)[1].get<std::uint64_t>() - (*range)[0].get<std::uint64_t>());
    }
    return names;
}

bool is_index_of(ByteView begin, Id128 incarnation) {
    const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
    return text.find("\"cairn_incarnation\": \"" + incarnation.hex() + "\"") != std::string_view::npos;
}

Bytes encode_safetensors_index(const std::map<std::string, std::string>& file_of, std::uint64_t bytes, Id128 incarnation) {
    Json index;  // by name: the incarnation comes first
    index["metadata"]["cairn_incarnation"] = incarnation.hex();
    index["metadata"]["total_size"] = bytes;
    index["weight_map"] = file_of;
    const std::string text = index.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    return Bytes(as_bytes(text).begin(), as_bytes(text).end());
}

}  // namespace cairn
