// Writes a committed version whose parts are safetensors files: the header of such a file is the part's prefix, the tensors follow without a gap, and the index lies in a
// file beside it. Nobody but tests/safetensors_test.py runs this: its files have no gap at all, and each kind of layout, which those of flush.layout = safetensors have not.
//
// Usage: safetensors_testing PERSISTENT NAME LAYOUT     LAYOUT: part (one for all ranks), rank or node (one for each rank)
// From standard input come the tensors in the order in which files have them: a line `RANK NAME DTYPE TYPE [DIMENSION...]` for each (its type as
// safetensors names it, and Cairn's number for it), an empty line, and then the bytes of all.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <numeric>
#include <sstream>

#include "base/checksum.hpp"
#include "format/lineage.hpp"
#include "format/manifest.hpp"
#include "format/part.hpp"
#include "model/checksum_units.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t block_bytes = 4096;
constexpr Id128 incarnation{0x5AFE, 0x7E45}, attempt_id{0x5AFE, 1};

struct Tensor {
    Rank rank = 0;
    std::string dtype;  // as safetensors names the region's type
    Region region;  // of its rank's image, in which tensors lie side by side, too
    Bytes content;
};

std::vector<Tensor> read_tensors(std::istream& in) {
    std::vector<Tensor> tensors;
    std::vector<std::uint64_t> image_bytes;
    for (std::string line; std::getline(in, line) && !line.empty();) {
        std::istringstream words(line);
        Tensor tensor;
        Region& region = tensor.region;
        unsigned type = 0;
        words >> tensor.rank >> region.name >> tensor.dtype >> type;
        region.type = static_cast<DataType>(type);
        region.shape.assign(std::istream_iterator<std::uint64_t>(words), {});
        region.length = std::accumulate(region.shape.begin(), region.shape.end(), type_bytes(region.type), std::multiplies());
        image_bytes.resize(std::max<std::size_t>(image_bytes.size(), tensor.rank + 1));
        region.offset = image_bytes[tensor.rank];
        image_bytes[tensor.rank] += region.length;
        tensors.push_back(std::move(tensor));
    }
    for (Tensor& tensor : tensors) {
        tensor.content.resize(tensor.region.length);
        in.read(reinterpret_cast<char*>(tensor.content.data()), static_cast<std::streamsize>(tensor.content.size()));
        CAIRN_CHECK(in.good());
    }
    return tensors;
}

// Length, then JSON, with blanks at its end so that the data begin on a multiple of 8.
Bytes header_of(const std::vector<Tensor>& tensors) {
    std::string json;
    std::uint64_t at = 0;
    for (const Tensor& tensor : tensors) {
        std::string shape;
        for (const std::uint64_t dimension : tensor.region.shape) shape += (shape.empty() ? "" : ",") + std::to_string(dimension);
        json += (json.empty() ? "{\"" : ",\"") + tensor.region.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(at) + ",";
        json += std::to_string(at += tensor.region.length) + "]}";
    }
    json += "}";
    json.resize(round_up(json.size(), 8), ' ');
    Bytes header(8);
    for (std::size_t i = 0; i < header.size(); ++i) header[i] = static_cast<std::byte>(json.size() >> (8 * i));
    header.insert(header.end(), as_bytes(json).begin(), as_bytes(json).end());
    return header;
}

// A tensor is a run of its own, which begins where the one before it ends, and its image is cut where it ends.
void add(Footer& footer, const Tensor& tensor) {
    const Region& region = tensor.region;
    const auto is_its = [&](const ImageInfo& image) { return image.rank == tensor.rank; };
    auto image = std::find_if(footer.images.begin(), footer.images.end(), is_its);
    if (image == footer.images.end()) image = footer.images.insert(image, ImageInfo{tensor.rank});
    if (region.offset != 0 && region.length != 0 && region.offset % block_bytes != 0) ++image->cuts;
    image->regions.push_back(region);
    image->bytes += region.length;
    if (region.length == 0) return;
    StoredPiece piece{tensor.rank, region.offset, region.length};
    std::uint64_t begin = 0;
    for (const std::uint64_t end : unit_ends(Units(block_bytes, region.offset, {}), region.length)) {
        piece.checksums.push_back(checksum(ByteView(tensor.content).subspan(begin, end - begin)));
        begin = end;
    }
    footer.runs.push_back({footer.data_bytes, region.length, 0, 0, {std::move(piece)}});
    footer.data_bytes += region.length;
}

void write(const std::filesystem::path& path, const Bytes& bytes) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    CAIRN_CHECK(file.flush().good());
}

// The part, its index beside it, and what the manifest says of both.
PartInfo write_part(const std::filesystem::path& directory, const PartFileName& name, Footer footer, const std::vector<Tensor>& tensors) {
    Bytes part = header_of(tensors);
    footer.part = name.part;
    footer.prefix_bytes = footer.data_bytes = part.size();
    footer.prefix_checksum = checksum(part);
    for (const Tensor& tensor : tensors) {
        add(footer, tensor);
        part.insert(part.end(), tensor.content.begin(), tensor.content.end());
    }
    CAIRN_CHECK(check_footer(footer).ok());
    const Bytes index = encode_footer(footer, IndexPlace::beside);
    PartInfo info{part_file_name(name), part.size(), 0, footer_checksum(index)};
    info.index_bytes = index.size();
    for (const ImageInfo& image : footer.images) info.ranks.push_back(image.rank);
    std::sort(info.ranks.begin(), info.ranks.end());
    write(directory / info.file, part);
    write(directory / part_index_file_name(info.file), index);
    return info;
}

void write_version(const std::filesystem::path& series, std::string name, FileLayout layout, const std::vector<Tensor>& tensors) {
    Manifest manifest;
    manifest.key = {std::move(name), 1, incarnation};
    manifest.epoch = 1;
    manifest.attempt_id = attempt_id;
    manifest.block_bytes = block_bytes;
    for (const Tensor& tensor : tensors) {
        manifest.ranks = std::max(manifest.ranks, tensor.rank + 1);
        manifest.image_bytes += tensor.region.length;
    }
    manifest.nodes = manifest.ranks;
    const std::uint32_t parts = layout == FileLayout::parts ? 1 : manifest.ranks;
    const Footer common{manifest.key, 1, attempt_id, 0, parts, manifest.ranks, block_bytes};
    const std::filesystem::path directory = series / version_directory_name(manifest.key.version);
    for (std::uint32_t part = 0; part < parts; ++part) {
        std::vector<Tensor> of_part;
        for (const Tensor& tensor : tensors)
            if (parts == 1 || tensor.rank == part) of_part.push_back(tensor);
        manifest.parts.push_back(write_part(directory, {part, parts, attempt_id, layout}, common, of_part));
    }
    CAIRN_CHECK(check_manifest(manifest).ok());
    write(series / "lineage" / lineage_open_name(manifest.epoch), encode_open_record({incarnation, manifest.epoch, "testing", 1, 0, manifest.ranks}));
    write(directory / manifest_file_name(incarnation), encode_manifest(manifest));
}

}  // namespace
}  // namespace cairn

int main(int count, char** words) {
    using namespace cairn;
    CAIRN_CHECK(count == 4);
    const auto layout = std::find(std::begin(layout_words), std::end(layout_words), std::string_view(words[3])) - std::begin(layout_words);
    CAIRN_CHECK(layout < std::ssize(layout_words));
    write_version(std::filesystem::path(words[1]) / words[2], words[2], static_cast<FileLayout>(layout), read_tensors(std::cin));
}
