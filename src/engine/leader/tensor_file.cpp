#include "engine/leader/tensor_file.hpp"

#include <algorithm>
#include <utility>

#include "base/checksum.hpp"
#include "copies/room_for.hpp"
#include "format/region_index.hpp"
#include "format/safetensors.hpp"
#include "model/checksum_units.hpp"

namespace cairn::engine {

namespace {

// Of an image's last bytes: what its pieces say of whole units among them.
bool is_as_written(const Footer& footer, const ImageInfo& image, ByteView index) {
    const std::uint64_t begin = image.bytes - image.index_bytes;
    std::uint64_t compared = 0;
    for (const StoredRun& run : footer.runs)
        for (const StoredPiece& piece : run.pieces) {
            if (piece.rank != image.rank || piece.image_offset + piece.length <= begin) continue;
            const std::vector<std::uint64_t> ends = unit_ends({footer.block_bytes, piece.image_offset, piece.cuts}, piece.length);
            for (std::size_t i = 0; i < ends.size() && i < piece.checksums.size(); ++i) {
                const std::uint64_t from = piece.image_offset + (i == 0 ? 0 : ends[i - 1]), to = piece.image_offset + ends[i];
                if (from < begin) continue;
                if (checksum(index.subspan(from - begin, to - from)) != piece.checksums[i]) return false;
                compared += to - from;
            }
        }
    return compared == index.size();  // the index is cut from what is before it (FORMAT.md, Units)
}

// Through a descriptor of its own, which reads any bytes: that of the part may be for whole pages only.
Task<Result<std::vector<Region>>> read_regions(World& world, const PartState& part, const Footer& footer, const ImageInfo& image, FilePtr file, Nanos wait) {
    if (image.index_bytes == 0) co_return image.regions;
    Result<Bytes> room = room_for<Bytes>(image.index_bytes);
    if (!room.ok()) co_return std::move(room).status();
    const std::uint64_t begin = image.bytes - image.index_bytes;
    const Slice index = Slice::of(std::move(room).value());
    CO_TRY(co_await read_all(world.storage, file, part.places->begins.at(image.rank) + begin, index, world.clock.in(wait)));
    if (!is_as_written(footer, image, index.bytes()))
        co_return Status(Code::io_error, "the region index of rank " + std::to_string(image.rank) + " is not what was written: the file system, or somebody else, changed it");
    co_return decode_region_index(index.bytes(), begin);
}

}  // namespace

Task<Status> write_tensors_header(World& world, PartState& part, Footer& footer, Nanos wait) {
    Result<FilePtr> file = co_await world.storage.open(part.path, OpenOptions(), world.clock.in(wait));
    if (!file.ok()) co_return std::move(file).status().within("reading a part back");
    std::vector<TensorImage> images;
    for (const ImageInfo& image : footer.images) {
        if (image.bytes == 0) continue;
        Result<std::vector<Region>> regions = co_await read_regions(world, part, footer, image, *file, wait);
        if (!regions.ok()) co_return std::move(regions).status();
        images.push_back({image.rank, part.places->begins.at(image.rank) - part.places->prefix_bytes, image.bytes, std::move(regions).value()});
    }
    file->reset();
    std::sort(images.begin(), images.end(), [](const TensorImage& a, const TensorImage& b) { return a.begin < b.begin; });
    Result<Bytes> header = encode_safetensors_header(images, part.places->prefix_bytes);
    if (!header.ok()) co_return std::move(header).status();
    footer.prefix_checksum = checksum(*header);
    Slice data = Slice::of(std::move(header).value());
    Status written = co_await write_all(world.storage, part.file, 0, std::move(data), world.clock.in(wait));
    co_return written;
}

}  // namespace cairn::engine
