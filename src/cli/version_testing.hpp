// For tests: writes committed versions, opens and sealed images as the engine would, from the format's own encoders.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "cli/program_testing.hpp"
#include "catalog/layout.hpp"
#include "codec/codec.hpp"
#include "format/image.hpp"
#include "format/lineage.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/part.hpp"
#include "format/roster.hpp"

namespace cairn::cli {

// Two incarnations whose first digits tell them apart.
inline constexpr Id128 first{0x1111111111111111, 0xaaaaaaaaaaaaaaaa}, second{0x2222222222222222, 0xbbbbbbbbbbbbbbbb};
inline constexpr std::uint64_t block_bytes = 4096;

// One checkpoint, "melt", of `ranks` ranks in `files` files. Rank r has an image of (r + 1) * 10,000 bytes: region
// "grid" (f64, all but 100 bytes and the file), and the routed file "restart/melt.<r>" of 1,000 bytes. Rank 3 has an
// empty image.
struct Melt {
    explicit Melt(const ProgramFolder& folder) : layout{folder.path("checkpoints")}, scratch(folder.path("scratch")) {}

    Layout layout;
    std::string scratch;
    std::uint32_t ranks = 4, files = 2;
    std::function<ImageInfo(Rank)> describe = &Melt::info;  // or other images, where a test wants them larger
    std::function<std::string(Rank, Version)> bytes_of = &Melt::image;
    Codec codec = Codec::none;              // of the runs
    std::function<void(StoredRun&)> spoil;  // each, before the footer is written: what nobody finds on disk

    static std::uint64_t image_bytes(Rank rank) { return rank == 3 ? 0 : (rank + 1) * 10'000; }
    static std::string image(Rank rank, Version version) {
        std::string bytes(image_bytes(rank), '\0');
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<char>(i * 31 + i / 251 + rank * 7 + version * 13);
        return bytes;
    }
    static ImageInfo info(Rank rank) {
        ImageInfo image{rank, image_bytes(rank), {}};
        if (image.bytes == 0) return image;
        const std::uint64_t grid = (image.bytes - 1'100) / 8;
        image.regions.push_back({"grid", RegionKind::memory, DataType::f64, {grid}, 0, grid * 8});
        image.regions.push_back({"restart/melt." + std::to_string(rank),
                                 RegionKind::file,
                                 DataType::bytes,
                                 {1'000},
                                 image.bytes - 1'000,
                                 1'000});
        return image;
    }

    static void write(const std::string& path, ByteView bytes, bool append = false) {
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        std::ofstream out(path, append ? std::ios::binary | std::ios::app : std::ios::binary);
        out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    static VersionKey key(Version version, Id128 incarnation) { return {"melt", version, incarnation}; }
    std::string part_path(Version version, Id128 incarnation, std::uint32_t part, std::uint64_t attempt = 7) const {
        return layout.part(key(version, incarnation), part, files, {incarnation.high, attempt});
    }

    void open(std::uint64_t epoch, Id128 incarnation, Parent parent = {}) const {
        write(layout.lineage_open("melt", epoch),
              encode_open_record({incarnation, epoch, "host", 1, 1'700'000'000, ranks}));
        write(layout.lineage_from("melt", epoch), encode_from_record({incarnation, parent}));
    }

    // The ranks of part k are those with rank * files / ranks == k. Returns what a manifest says of it.
    PartInfo part(Version version, Id128 incarnation, std::uint32_t k, std::uint64_t attempt = 7) const {
        Footer footer;
        footer.key = key(version, incarnation);
        footer.attempt = 1;
        footer.attempt_id = {incarnation.high, attempt};
        footer.part = k;
        footer.parts = files;
        footer.ranks = ranks;
        footer.block_bytes = block_bytes;
        PartInfo result;
        const std::string path = part_path(version, incarnation, k, attempt);
        std::string data;
        for (Rank rank = 0; rank < ranks; ++rank) {
            if (rank * files / ranks != k) continue;
            result.ranks.push_back(rank);
            footer.images.push_back(describe(rank));
            const std::string bytes = bytes_of(rank, version);
            if (bytes.empty()) continue;
            StoredPiece piece{rank, 0, bytes.size(), 0, {}};
            for (std::size_t at = 0; at < bytes.size(); at += block_bytes)
                piece.checksums.push_back(checksum(as_bytes(bytes.substr(at, block_bytes))));
            Bytes encoded(bytes.size());
            encoded.resize(codec == Codec::none ? 0 : encode(codec, as_bytes(bytes), {}, encoded));
            const bool is_encoded = !encoded.empty();
            const std::string stored = is_encoded ? std::string(as_text(encoded)) : bytes;
            footer.runs.push_back({data.size(), stored.size(), is_encoded ? 1u : 0u, is_encoded ? checksum(encoded) : 0, {piece}});
            if (is_encoded && footer.codecs.empty()) footer.codecs.push_back({std::string(codec_name(codec)), ""});
            if (spoil) spoil(footer.runs.back());
            data += stored;
            data.resize(round_up(data.size(), block_bytes));
        }
        footer.data_bytes = data.size();
        const Bytes tail = encode_footer(footer);
        write(path, as_bytes(data));
        write(path, tail, true);
        result.file = std::filesystem::path(path).filename();
        result.bytes = data.size() + tail.size();
        result.footer_offset = data.size();
        result.footer_checksum = footer_checksum(tail);
        return result;
    }

    void commit(Version version, Id128 incarnation, std::uint64_t epoch, Parent parent = {}) const {
        Manifest manifest;
        manifest.key = key(version, incarnation);
        manifest.epoch = epoch;
        manifest.parent = parent;
        manifest.attempt_id = {incarnation.high, 7};
        manifest.ranks = ranks;
        manifest.nodes = 2;
        manifest.block_bytes = block_bytes;
        manifest.wall_time_s = 1'700'000'000 + version;
        for (Rank rank = 0; rank < ranks; ++rank) manifest.image_bytes += describe(rank).bytes;
        for (std::uint32_t k = 0; k < files; ++k) manifest.parts.push_back(part(version, incarnation, k));
        ASSERT_TRUE(check_manifest(manifest).ok()) << check_manifest(manifest).text();
        write(layout.manifest(manifest.key), encode_manifest(manifest));
    }

    // The roster that a job keeps under persistent while it may have something to finish.
    void record(Id128 incarnation, std::uint64_t epoch) const {
        Roster roster;
        roster.name = "melt";
        roster.incarnation = incarnation;
        roster.secret = {5, 6};
        roster.epoch = epoch;
        roster.ranks = ranks;
        roster.files = files;
        roster.members.push_back({"n0", "nowhere", {0, 1, 2, 3}});
        ASSERT_TRUE(check_roster(roster).ok()) << check_roster(roster).text();
        write(layout.job_roster(incarnation), encode_roster(roster));
    }

    // A sealed image in the scratch of a node of this host. Returns the path of its slot.
    std::string seal(const std::string& node, Version version, Id128 incarnation, std::uint64_t epoch, Rank rank,
                     Parent parent = {}, bool checksummed = false) const {
        ImageHeader header;
        header.key = key(version, incarnation);
        header.epoch = epoch;
        header.parent = parent;
        header.rank = rank;
        header.ranks = ranks;
        header.block_bytes = block_bytes;
        header.image = describe(rank);
        const ImageLayout where = image_layout(encode_image_header(header).size(), header.image, block_bytes);
        header.data_offset = where.data_offset;
        header.checksums_offset = where.checksums_offset;
        const Bytes encoded = encode_image_header(header);
        const std::string data = bytes_of(rank, version);
        Bytes slot(where.file_bytes);
        std::copy(encoded.begin(), encoded.end(), slot.begin() + image_header_offset);
        std::copy_n(as_bytes(data).begin(), data.size(), slot.begin() + static_cast<std::ptrdiff_t>(where.data_offset));
        std::memcpy(slot.data() + image_state_offset, &image_sealed_word, sizeof image_sealed_word);
        if (checksummed) {
            std::size_t at = where.checksums_offset;
            for (std::size_t from = 0; from < data.size(); from += block_bytes, at += sizeof(std::uint64_t)) {
                const std::uint64_t made = checksum(as_bytes(data.substr(from, block_bytes)));
                std::memcpy(slot.data() + at, &made, sizeof made);
            }
            std::memcpy(slot.data() + image_checksummed_offset, &image_checksummed_word, sizeof image_checksummed_word);
            const std::uint64_t proof = image_proof(header, ByteView(slot).subspan(where.checksums_offset, at - where.checksums_offset));
            std::memcpy(slot.data() + image_proof_offset, &proof, sizeof proof);
        }
        const ScratchLayout root = ScratchLayout::of(scratch, ::getuid(), node, layout.persistent);
        const std::string path = root.images() + "/" + slot_file_name(SlotKind::image, version * ranks + rank);
        write(path, slot);
        note_boot(node);
        return path;
    }
    // What a node's daemon leaves beside them; `boot`: another than the machine's present one.
    void note_boot(const std::string& node, const std::string& boot = {}) const {
        std::ifstream kernel("/proc/sys/kernel/random/boot_id");
        std::string id = boot;
        if (id.empty()) std::getline(kernel, id);
        write(ScratchLayout::of(scratch, ::getuid(), node, layout.persistent).boot(), as_bytes(id + "\n"));
    }

    // Changes one byte of a file.
    static void flip(const std::string& path, std::uint64_t offset) {
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        file.seekg(static_cast<std::streamoff>(offset));
        const char was = static_cast<char>(file.get());
        file.seekp(static_cast<std::streamoff>(offset));
        file.put(static_cast<char>(was ^ 0x40));
    }
};

}  // namespace cairn::cli
