// For tests: a committed version made by hand, whose images end with a region index as captures leave them; and files in memory that it lies in, whose
// reads are counted.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>

#include "base/bytes.hpp"
#include "catalog/layout.hpp"
#include "format/manifest.hpp"
#include "format/part.hpp"
#include "format/region_index.hpp"
#include "model/checksum_units.hpp"
#include "world/sim/content.hpp"
#include "world/world.hpp"

namespace cairn::testing {

// Buffers have memory behind them, as a region index is looked at.
class FilesInMemory final : public Storage {
  public:
    std::map<std::string, Bytes> files;
    std::uint32_t reads = 0;
    Clock* clock = nullptr;  // by which each read takes its time

    World in(const World& world) { return {world.clock, *this, world.network, world.random, world.cpu}; }

    Result<BufferPtr> allocate(std::uint64_t bytes) override { return BufferPtr(std::make_shared<BytesBuffer>(Bytes(bytes))); }
    Task<Result<FilePtr>> open(std::string path, OpenOptions, Nanos) override {
        if (!files.count(path)) co_return not_found(path);
        FilePtr file = std::make_shared<Opened>(std::move(path));
        co_return file;
    }
    Task<Result<std::uint64_t>> read_some(FilePtr file, std::uint64_t offset, Slice into, Nanos) override {
        ++reads;
        if (clock) co_await clock->sleep(1'000'000 + into.length);
        const Bytes& bytes = files.at(file->path());
        const std::uint64_t length = offset >= bytes.size() ? 0 : std::min(into.length, bytes.size() - offset);
        if (length > 0) std::memcpy(into.data(), bytes.data() + offset, length);
        co_return length;
    }
    Task<Result<std::uint64_t>> file_bytes(FilePtr file, Nanos) override { co_return files.at(file->path()).size(); }
    Task<Result<std::uint64_t>> write_some(FilePtr, std::uint64_t, Slice, Nanos) override { co_return only_read(); }
    Task<Status> fsync(FilePtr, Nanos) override { co_return only_read(); }
    Task<Status> resize(FilePtr, std::uint64_t, Nanos) override { co_return only_read(); }
    Task<Status> make_directory(std::string, std::uint32_t, Nanos) override { co_return only_read(); }
    Task<Status> fsync_directory(std::string, Nanos) override { co_return only_read(); }
    Task<Status> publish(std::string, std::string, Nanos) override { co_return only_read(); }
    Task<Status> replace(std::string, std::string, Nanos) override { co_return only_read(); }
    Task<Status> remove(std::string, Nanos) override { co_return only_read(); }
    Task<Status> remove_directory(std::string, Nanos) override { co_return only_read(); }
    // Whether there is such a directory.
    Task<Result<std::vector<DirectoryEntry>>> list(std::string path, Nanos) override {
        const auto first = files.lower_bound(path + "/");
        if (first == files.end() || first->first.rfind(path + "/", 0) != 0) co_return not_found(path);
        co_return std::vector<DirectoryEntry>();
    }
    Task<Result<std::uint64_t>> free_bytes(std::string, Nanos) override { co_return only_read(); }
    Task<Result<BufferPtr>> map(std::string, bool, Nanos) override { co_return only_read(); }

  private:
    class Opened final : public File {
      public:
        explicit Opened(std::string path) : path_(std::move(path)) {}
        const std::string& path() const noexcept override { return path_; }

      private:
        std::string path_;
    };
    static Status only_read() { return {Code::unsupported, "these files are only read"}; }
};

struct IndexedImage {
    Bytes bytes;
    std::uint64_t index_bytes = 0;
    std::vector<std::uint64_t> cuts;
};

inline constexpr std::uint64_t indexed_block_bytes = 65'536;

// A number under each name, end to end: 0, 1, 2, ...
inline IndexedImage indexed_image(const std::vector<std::string>& names) {
    IndexedImage image;
    image.bytes.resize(round_up(8 * names.size(), region_index_align));
    std::vector<Region> regions;
    for (std::size_t i = 0; i < names.size(); ++i) {
        Region& region = regions.emplace_back();
        region.name = names[i];
        region.type = DataType::u64;
        region.shape = {1};
        region.offset = 8 * i;
        region.length = 8;
        const std::uint64_t value = i;
        std::memcpy(image.bytes.data() + region.offset, &value, 8);
    }
    const RegionIndex index = encode_region_index(regions);
    for (const IndexPage& page : index.pages) {
        Region& piece = regions.emplace_back();
        piece.offset = image.bytes.size() + page.offset;
        piece.length = page.length;
    }
    image.index_bytes = index.bytes.size();
    image.bytes.insert(image.bytes.end(), index.bytes.begin(), index.bytes.end());
    image.cuts = cuts_of(regions, image.bytes.size(), indexed_block_bytes);
    return image;
}

// Rank i's image is all of part i.
inline Manifest commit_by_hand(FilesInMemory& files, const Layout& layout, const std::vector<IndexedImage>& images) {
    Manifest manifest;
    manifest.key = {"indexed", 1, {1, 2}};
    manifest.epoch = 1;
    manifest.attempt_id = {1, 3};
    manifest.ranks = static_cast<std::uint32_t>(images.size());
    manifest.nodes = 1;
    manifest.block_bytes = indexed_block_bytes;
    for (Rank rank = 0; rank < manifest.ranks; ++rank) {
        const IndexedImage& image = images[rank];
        Footer footer;
        footer.key = manifest.key;
        footer.attempt = 1;
        footer.attempt_id = manifest.attempt_id;
        footer.part = rank;
        footer.parts = footer.ranks = manifest.ranks;
        footer.block_bytes = manifest.block_bytes;
        footer.data_bytes = round_up(image.bytes.size(), part_alignment);
        footer.images.push_back({rank, image.bytes.size(), {}, image.cuts.size(), image.index_bytes});
        StoredPiece piece{rank, 0, image.bytes.size(), 0, {}, image.cuts};
        piece.checksums = sim::checksums_of(sim::runs_of_bytes(image.bytes), {footer.block_bytes, 0, image.cuts});
        footer.runs.push_back({0, image.bytes.size(), 0, 0, {piece}});
        const Bytes tail = encode_footer(footer);
        PartInfo& part = manifest.parts.emplace_back();
        part.file = part_file_name(rank, manifest.ranks, manifest.attempt_id);
        part.footer_offset = footer.data_bytes;
        part.bytes = part.footer_offset + tail.size();
        part.footer_checksum = footer_checksum(tail);
        part.ranks = {rank};
        manifest.image_bytes += image.bytes.size();
        Bytes& file = files.files[layout.part(manifest, rank)];
        file = image.bytes;
        file.resize(footer.data_bytes);
        file.insert(file.end(), tail.begin(), tail.end());
    }
    files.files[layout.manifest(manifest.key)] = encode_manifest(manifest);
    return manifest;
}

}  // namespace cairn::testing
