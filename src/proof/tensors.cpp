#include "proof/tensors.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "world/sim/content.hpp"

namespace cairn::testing {

namespace {

using Json = nlohmann::json;

struct Tensor {
    std::string name;
    std::uint64_t end = 0;
    std::uint64_t bytes = 0;  // by its type and shape
};

// By where they begin in the data.
using Tensors = std::multimap<std::uint64_t, Tensor>;

Status bad(const std::string& path, const std::string& what) { return corrupt(path + ": as a safetensors file: " + what); }

Result<Tensors> read_tensors(Kept& kept, const std::string& path, std::uint64_t prefix_bytes) {
    TRY_ASSIGN(const Slice prefix, kept.bytes_of(path, 0, prefix_bytes));
    const Bytes bytes = sim::materialise(sim::runs_of(prefix));
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < 8; ++i) length |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    if (length + 8 != prefix_bytes) return bad(path, "its header is not what stands before its data");
    const Json header = Json::parse(reinterpret_cast<const char*>(bytes.data()) + 8, reinterpret_cast<const char*>(bytes.data()) + prefix_bytes, nullptr, false);
    if (!header.is_object()) return bad(path, "its header is not JSON");
    static const std::map<std::string, std::uint64_t> sizes = {{"U8", 1}, {"I8", 1}, {"U16", 2}, {"I16", 2}, {"F16", 2}, {"BF16", 2}, {"U32", 4}, {"I32", 4}, {"F32", 4}, {"U64", 8}, {"I64", 8}, {"F64", 8}};
    Tensors tensors;
    for (const auto& [name, entry] : header.items()) {
        Tensor tensor{name, entry["data_offsets"][1], sizes.at(entry["dtype"])};
        for (const std::uint64_t extent : entry["shape"]) tensor.bytes *= extent;
        tensors.emplace(entry["data_offsets"][0].get<std::uint64_t>(), std::move(tensor));
    }
    return tensors;
}

Status check_end_to_end(const std::string& path, const Tensors& tensors, std::uint64_t data_bytes) {
    std::uint64_t at = 0;
    for (const auto& [begin, tensor] : tensors) {  // those without bytes come before or behind others at one place
        if (tensor.bytes == 0 && tensor.end == begin && begin <= at) continue;
        if (begin != at || tensor.end != begin + tensor.bytes) return bad(path, tensor.name + " does not begin where the one before it ends, or has other bytes than its shape says");
        at = tensor.end;
    }
    return at == data_bytes ? Status() : bad(path, "its tensors end at " + std::to_string(at) + ", and its data have " + std::to_string(data_bytes) + " bytes");
}

// Where a byte of an image lies in the part.
std::optional<std::uint64_t> place_of(const Footer& footer, Rank rank, std::uint64_t image_offset) {
    for (const StoredRun& run : footer.runs)
        for (const StoredPiece& piece : run.pieces)
            if (piece.rank == rank && image_offset >= piece.image_offset && image_offset - piece.image_offset < piece.length) return run.part_offset + piece.at + image_offset - piece.image_offset;
    return std::nullopt;
}

}  // namespace

Status check_tensors(SeedRun& run, Kept& kept, const OpenVersion& version) {
    if (run.cluster.options.layout != FileLayout::tensors || version.manifest.parts.front().origin != 0) return {};
    for (std::size_t i = 0; i < version.footers.size(); ++i) {
        const Footer& footer = version.footers[i];
        const std::string path = run.cluster.layout.part(version.manifest, version.parts[i]);
        if (!path.ends_with(".safetensors")) return corrupt(path + ": other programs do not know it for a safetensors file");
        TRY_ASSIGN(const Tensors tensors, read_tensors(kept, path, footer.prefix_bytes));
        TRY(check_end_to_end(path, tensors, version.manifest.parts[version.parts[i]].bytes - footer.prefix_bytes));
        std::map<std::string, std::uint64_t> begins;
        for (const auto& [begin, tensor] : tensors) begins.emplace(tensor.name, begin);
        for (const ImageInfo& image : footer.images)
            for (const Region& region : image.regions) {
                auto found = begins.find(region.name);
                const auto one_of_several = begins.find(region.name + "//rank" + std::to_string(image.rank));
                if (one_of_several != begins.end()) found = one_of_several;
                if (found == begins.end()) return bad(path, region.name + " of rank " + std::to_string(image.rank) + " is no tensor");
                if (region.length > 0 && place_of(footer, image.rank, region.offset) != footer.prefix_bytes + found->second) return bad(path, region.name + " lies elsewhere");
            }
        if (footer.images.size() > 1) run.see(Saw::tensors_of_several);
    }
    run.see(Saw::tensors);
    return {};
}

}  // namespace cairn::testing
