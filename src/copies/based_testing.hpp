// For tests: a version of three ranks, two in packs, and a newer one some of whose runs are stored as differences to it; encoded for real, in files in memory.
#pragma once

#include <gtest/gtest.h>

#include "base/checksum.hpp"
#include "copies/indexed_testing.hpp"
#include "copies/restore.hpp"
#include "world/sim/simulation.hpp"

namespace cairn::testing {

// Codecs as they are, of buffers that have memory.
class CodecsCpu final : public Cpu {
  public:
    int decodes = 0;
    Clock* clock = nullptr;

    Task<std::vector<std::uint64_t>> checksums(Slice data, Units units) override { co_return sim::checksums_of(sim::runs_of_bytes(Bytes(data.bytes().begin(), data.bytes().end())), units); }
    bool may_shrink(Codec, const std::vector<std::uint64_t>&, std::uint64_t, std::uint64_t) const override { return true; }
    Task<Result<Encoded>> encode(Coding coding, Slice raw, BaseBytes base, FindArrays, Slice into, Nanos) override {
        Base older{base.bytes.length == 0 ? ByteView() : base.bytes.bytes()};
        Encoded made{cairn::encode(coding.codec, raw.bytes(), {}, std::span(into.data(), into.length), &older), 0, 0, older.is_needed};
        co_return made;
    }
    Task<Result<std::vector<NumberArray>>> find(FindArrays arrays, Nanos) override { co_return arrays(); }
    unsigned encoders() const override { return 1; }
    Task<Status> decode(Codec codec, Slice stored, Slice base, Slice into, Nanos) override {
        ++decodes;
        co_await clock->sleep(into.length);
        co_return cairn::decode(codec, stored.bytes(), std::span(into.data(), into.length), base.length == 0 ? ByteView() : base.bytes());
    }
    Task<Result<bool>> equal(Pairs, Nanos) override { co_return false; }
};

// A run before it is stored: whose bytes.
struct RunByHand {
    struct Range {
        Rank rank = 0;
        std::uint64_t offset = 0, length = 0;
    };
    std::vector<Range> ranges;
    Codec codec = Codec::none;
    std::uint32_t base = 0;  // 0: none; else the place among the bases
    std::vector<NumberArray> arrays = {};
};

using ImagesByHand = std::vector<Bytes>;  // by rank

inline constexpr std::uint64_t based_block_bytes = 4096;

class BasedVersions {
  public:
    static constexpr std::uint64_t small = 2 * based_block_bytes + 1000;
    const std::uint64_t large;

    explicit BasedVersions(std::uint64_t blocks = 48) : large(blocks * based_block_bytes) {
        files.clock = &process.world().clock;
        cpu.clock = files.clock;
        for (const std::uint64_t bytes : {large, small, small}) older.push_back(numbers(bytes, older.size() + 1));
        newer = older;
        for (Rank rank = 0; rank < 3; ++rank) change(newer[rank], rank);
        // The base has two parts, and its runs end elsewhere.
        const std::uint64_t third = large / 3, half = large / 2;
        commit(base, older, {{{{{0, 0, third}}, Codec::zero_runs}, {{{0, third, third}}}}, {{{{0, 2 * third, third}}, Codec::planes}, pack(1, 2, Codec::planes, 0)}});
        commit(version, newer, {{{{{0, 0, half}}, Codec::planes, 1}, {{{0, half, based_block_bytes}}}, {{{0, half + based_block_bytes, half - based_block_bytes}}, Codec::planes_small, 1}, pack(2, 1, Codec::planes, 1)}});
    }
    // Of two ranks.
    static RunByHand pack(Rank one, Rank two, Codec codec, std::uint32_t base) {
        RunByHand run{{{one, 0, small}, {two, 0, small}}, codec, base};
        for (const Rank rank : {one, two}) {
            NumberArray& array = run.arrays.emplace_back();
            array.offset = rank == one ? 0 : small;
            array.length = small;
            array.width = rank == 2 ? 4 : 8;
            array.is_float = true;
            array.is_swapped = rank == 2;
        }
        return run;
    }
    World world() { return {process.world().clock, files, process.world().network, process.world().random, cpu}; }

    // Bits that nothing shortens, but for some zeros.
    static Bytes numbers(std::uint64_t bytes, std::uint64_t seed) {
        Bytes image(bytes);
        for (std::uint64_t i = 0; i + 8 <= bytes; i += 8) {
            const std::uint64_t bits = i % 4096 < 512 ? 0 : 0x3ff0000000000000ull | sim::mix(seed * 1'000'000 + i) >> 12;
            std::memcpy(&image[i], &bits, 8);
        }
        return image;
    }
    // Rank 0's numbers by a little each, rank 1's more from number to number, and rank 2's, which are big endian.
    static void change(Bytes& image, Rank rank) {
        for (std::uint64_t i = 0; i + 8 <= image.size(); i += 8) {
            if (rank == 2) {
                image[i + 3] ^= static_cast<std::byte>(i / 8 % 3);
                image[i + 7] ^= static_cast<std::byte>(i / 8 % 2);
                continue;
            }
            std::uint64_t bits = 0;
            std::memcpy(&bits, &image[i], 8);
            bits += rank == 0 ? i / 8 % 5 : (i / 8) * (i / 8) * 1'000'000;
            std::memcpy(&image[i], &bits, 8);
        }
    }

    // Writes the parts, and the manifest into the place where it is looked for.
    void commit(Manifest& manifest, const ImagesByHand& images, const std::vector<std::vector<RunByHand>>& parts) {
        const Version number = &manifest == &base ? 10 : &manifest == &other ? 11 : 12;
        manifest.key = {"based", number, {1, 2}};
        manifest.epoch = 1;
        manifest.attempt_id = {manifest.key.incarnation.high, number};
        manifest.ranks = static_cast<std::uint32_t>(images.size());
        manifest.nodes = 1;
        manifest.block_bytes = based_block_bytes;
        for (const Bytes& image : images) manifest.image_bytes += image.size();
        for (const Manifest* of : {&base, &other})
            if (number == 12 && of->key.version != 0) manifest.bases.push_back({of->key.version, of->key.incarnation});
        for (std::uint32_t i = 0; i < parts.size(); ++i) add_part(manifest, images, parts[i], i, static_cast<std::uint32_t>(parts.size()));
        publish(manifest);
    }
    void publish(const Manifest& manifest) { files.files[layout.manifest(manifest.key)] = encode_manifest(manifest); }
    Footer footer_of(const Manifest& manifest, std::uint32_t part) {
        Result<Footer> footer(Status(Code::deadline, ""));
        const auto task = [](World w, std::string path, Result<Footer>& out) -> Task<void> {
            Result<Footer> read = co_await read_footer(w, path, nullptr, {});
            out = std::move(read);
        };
        run(task(world(), layout.part(manifest, part), footer));
        return std::move(footer).value();
    }
    // In place of what stands behind the data.
    void write_footer(Manifest& manifest, std::uint32_t part, const Footer& footer) {
        const Bytes tail = encode_footer(footer);
        Bytes& file = files.files[layout.part(manifest, part)];
        file.resize(footer.data_bytes);
        file.insert(file.end(), tail.begin(), tail.end());
        PartInfo& info = manifest.parts[part];
        info.footer_offset = footer.data_bytes;
        info.bytes = file.size();
        info.footer_checksum = footer_checksum(tail);
        publish(manifest);
    }
    std::byte& stored_byte(const Manifest& manifest, std::uint32_t part, std::size_t run, std::uint64_t at) {
        return files.files.at(layout.part(manifest, part))[footer_of(manifest, part).runs[run].part_offset + at];
    }

    // The newer one's image of a rank: ok, and then the bytes are right.
    Status restore(Rank rank, std::vector<ImageRange> ranges = {}, RestoreSettings settings = {}) {
        Status status = deadline_passed("not read");
        std::uint64_t wrong = 0;
        const ImageSink sink = [&](std::uint64_t offset, const Slice& data) {
            wrong += std::memcmp(data.data(), newer[rank].data() + offset, data.length) != 0 ? 1 : 0;
            restored_bytes += data.length;
            return Status();
        };
        const auto task = [](World w, Layout l, Manifest m, Rank r, std::vector<ImageRange> wanted, ImageSink s, RestoreSettings how, Status& out) -> Task<void> {
            Result<OpenVersion> opened = co_await open_version(w, l, m, r, how);
            out = opened.status();
            if (!opened.ok()) co_return;
            Status restored = co_await restore_image(w, l, *opened, r, std::move(wanted), s, how);
            out = std::move(restored);
        };
        restored_bytes = 0;
        run(task(world(), layout, version, rank, std::move(ranges), sink, settings, status));
        EXPECT_EQ(wrong, 0u) << "rank " << rank;
        return status;
    }
    std::vector<Damage> verify(VerifyDepth depth = VerifyDepth::decoded, RestoreSettings settings = {}) {
        Result<std::vector<Damage>> found(Status(Code::deadline, ""));
        verified_bytes = 0;
        const auto task = [](World w, Layout l, Manifest m, VerifyDepth d, RestoreSettings how, std::uint64_t& bytes, Result<std::vector<Damage>>& out) -> Task<void> {
            const std::function<void(std::uint64_t)> progress = [&bytes](std::uint64_t more) { bytes += more; };
            Result<std::vector<Damage>> damage = co_await verify_version(w, l, m, how, progress, d);
            out = std::move(damage);
        };
        run(task(world(), layout, version, depth, settings, verified_bytes, found));
        EXPECT_TRUE(found.ok()) << found.status().to_string();
        return found.ok() ? std::move(found).value() : std::vector<Damage>();
    }
    void run(Task<void> task) { CAIRN_CHECK(simulation.run(std::move(task), simulation.now() + 600 * second)); }

    sim::Simulation simulation{1, {}, {}};
    sim::Process& process = simulation.add_node().start_process("reader");
    FilesInMemory files;
    CodecsCpu cpu;
    Layout layout{"/persistent"};
    ImagesByHand older, newer, others;
    Manifest base, version, other;  // 10, 12, and 11, which a test may commit to be a base, too
    std::uint64_t restored_bytes = 0, verified_bytes = 0;

  private:
    static Footer empty_footer(const Manifest& manifest, std::uint32_t part, std::uint32_t parts) {
        Footer footer;
        footer.key = manifest.key;
        footer.attempt = 1;
        footer.attempt_id = manifest.attempt_id;
        footer.part = part;
        footer.parts = parts;
        footer.ranks = manifest.ranks;
        footer.block_bytes = manifest.block_bytes;
        for (const char* codec : {"zero-runs", "predict-planes-zstd", "predict-planes-small"}) footer.codecs.push_back({codec, ""});
        for (const BaseVersion& of : manifest.bases) footer.bases.push_back({of, 0, 0});
        return footer;
    }
    void add_part(Manifest& manifest, const ImagesByHand& images, const std::vector<RunByHand>& runs, std::uint32_t part, std::uint32_t parts) {
        Footer footer = empty_footer(manifest, part, parts);
        PartInfo& info = manifest.parts.emplace_back();
        info.file = part_file_name(part, parts, manifest.attempt_id);
        std::set<Rank> ranks;
        Bytes data;
        for (const RunByHand& each : runs) {
            for (const RunByHand::Range& range : each.ranges) ranks.insert(range.rank);
            const Bytes stored = store(each, images, footer.runs.emplace_back());
            footer.runs.back().part_offset = data.size();
            data.insert(data.end(), stored.begin(), stored.end());
            data.resize(round_up(data.size(), part_alignment));
        }
        for (const Rank rank : ranks) {
            Region region;
            region.name = "field-" + std::to_string(rank);
            region.length = images[rank].size();
            region.shape = {region.length};
            footer.images.push_back({rank, region.length, {region}});
        }
        info.ranks.assign(ranks.begin(), ranks.end());
        footer.data_bytes = data.size();
        files.files[layout.part(manifest, part)] = std::move(data);
        write_footer(manifest, part, footer);
    }
    Bytes store(const RunByHand& each, const ImagesByHand& images, StoredRun& run) const {
        Bytes raw, before;
        for (const RunByHand::Range& range : each.ranges) {
            StoredPiece& piece = run.pieces.emplace_back(StoredPiece{range.rank, range.offset, range.length, raw.size(), {}});
            const auto part_of = [&](const Bytes& image) { return std::span(image).subspan(range.offset, range.length); };
            piece.checksums = sim::checksums_of(sim::runs_of_bytes(Bytes(part_of(images[range.rank]).begin(), part_of(images[range.rank]).end())), {based_block_bytes, range.offset, {}});
            raw.insert(raw.end(), part_of(images[range.rank]).begin(), part_of(images[range.rank]).end());
            const Bytes& changed = (each.base == 2 ? others : older)[range.rank];
            before.insert(before.end(), part_of(changed).begin(), part_of(changed).end());
        }
        run.stored_bytes = raw.size();
        if (each.codec == Codec::none) return raw;
        Bytes stored(raw.size() - 1);
        Base of{before};
        stored.resize(encode(each.codec, raw, each.arrays, stored, each.base != 0 ? &of : nullptr));
        CAIRN_CHECK(!stored.empty() && of.is_needed == (each.base != 0));
        run.stored_bytes = stored.size();
        run.codec = each.codec == Codec::zero_runs ? 1 : each.codec == Codec::planes ? 2 : 3;
        run.checksum = checksum(stored);
        run.base = each.base;
        return stored;
    }
};

}  // namespace cairn::testing
