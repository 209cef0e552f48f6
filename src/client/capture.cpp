#include "client/capture.hpp"

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"
#include "client/guarded.hpp"
#include "client/image_bytes.hpp"
#include "format/region_index.hpp"
#include "format/safetensors.hpp"
#include "model/checksum_units.hpp"

namespace cairn {

namespace {

// Writes an image front to back, making the checksums of its units on the way.
class ImageWriter {
  public:
    ImageWriter(std::byte* data, const ImageHeader& header, std::byte* table)
        : data_(data), ends_(table ? unit_ends({header.block_bytes, 0, header.cuts}, header.image.bytes) : std::vector<std::uint64_t>()), table_(table) {}

    void copy(const void* from, std::uint64_t bytes) {
        const auto* source = static_cast<const std::byte*>(from);
        while (bytes > 0) {
            // Without checksums in one go: memcpy knows best how to move much.
            const std::uint64_t now = within_unit(bytes);
            if (table_) sum_.add_once({source, static_cast<std::size_t>(now)}, data_ + at_);  // another thread of the application may write it, though it should not
            else std::memcpy(data_ + at_, source, now);
            advance(now);
            source += now;
            bytes -= now;
        }
    }
    void zero_to(std::uint64_t offset) {
        while (at_ < offset) {
            const std::uint64_t now = within_unit(offset - at_);
            std::memset(data_ + at_, 0, now);
            take(now);
        }
    }
    std::byte* place() const noexcept { return data_ + at_; }
    // Somebody else wrote so many bytes at place().
    void wrote(std::uint64_t bytes) {
        while (bytes > 0) {
            const std::uint64_t now = within_unit(bytes);
            take(now);
            bytes -= now;
        }
    }

  private:
    // As many bytes as the unit has left, unless there are no checksums to make.
    std::uint64_t within_unit(std::uint64_t bytes) const { return table_ ? std::min(bytes, ends_[unit_] - at_) : bytes; }
    // What is in place already.
    void take(std::uint64_t bytes) {
        if (table_) sum_.add({data_ + at_, static_cast<std::size_t>(bytes)});
        advance(bytes);
    }
    void advance(std::uint64_t bytes) {
        at_ += bytes;
        if (!table_ || at_ != ends_[unit_]) return;
        const std::uint64_t sum = sum_.take();
        std::memcpy(table_ + 8 * unit_, &sum, sizeof sum);
        ++unit_;
    }

    std::byte* data_;
    std::vector<std::uint64_t> ends_;  // of units, in the image
    std::byte* table_;                 // null: no checksums
    std::uint64_t at_ = 0;
    std::size_t unit_ = 0;
    RunningChecksum sum_;  // of the unit so far
};

Status fill(const CapturePlan& plan, const RegionTable& regions, SlotMaps::Map& slot, ImageWriter& writer) {
    for (const Stretch& each : stretches_of(plan, regions)) {
        switch (each.kind) {
            case Stretch::Kind::zeros:
                writer.zero_to(each.offset + each.length);
                break;
            case Stretch::Kind::memory:
                writer.copy(each.data, each.length);
                break;
            case Stretch::Kind::callback:
                TRY(call_application("region \"" + each.region->name + "\": its serialise callback",
                                     [&] { return each.region->serialise(each.region->context, writer.place(), each.length); }));
                writer.wrote(each.length);
                break;
            case Stretch::Kind::file:
                TRY(RoutedFile(*each.region, each.length).read(0, {slot.base + plan.header.data_offset + each.offset, static_cast<std::size_t>(each.length)}));
                writer.wrote(each.length);
                break;
        }
    }
    return {};
}

std::uint64_t proof_of(const ImageHeader& header, const std::byte* table) {
    return image_proof(header, {table, image_table_bytes(header)});
}

// Puts the region index behind the regions, and says where the image is cut; gives the bytes of the index.
Bytes add_index(ImageHeader& header) {
    RegionIndex index = encode_region_index(header.image.regions);
    std::vector<Region> pieces = header.image.regions;
    if (!index.bytes.empty()) header.image.bytes = round_up(header.image.bytes, region_index_align);
    for (const IndexPage& page : index.pages) {
        Region piece;
        piece.offset = header.image.bytes + page.offset;
        piece.length = page.length;
        pieces.push_back(std::move(piece));
    }
    header.image.index_bytes = index.bytes.size();
    header.image.bytes += index.bytes.size();
    header.cuts = cuts_of(pieces, header.image.bytes, header.block_bytes);
    // However short it is: damage of a small region beside it is not to cost all regions.
    const std::uint64_t begin = header.image.bytes - index.bytes.size();
    const auto place = std::lower_bound(header.cuts.begin(), header.cuts.end(), begin);
    if (begin > 0 && begin < header.image.bytes && begin % header.block_bytes != 0 && (place == header.cuts.end() || *place != begin)) header.cuts.insert(place, begin);
    return std::move(index.bytes);
}

}  // namespace

Result<CapturePlan> plan_capture(ImageHeader header, const RegionTable& regions, const MemoryMap& map, FileLayout layout_of_files) {
    CapturePlan plan;
    plan.header = std::move(header);
    plan.header.image.rank = plan.header.rank;
    const bool is_tensors = layout_of_files == FileLayout::tensors;
    TRY_ASSIGN(plan.header.image.regions, regions.lay_out(map, is_tensors, plan.header.image.bytes));
    if (is_tensors) plan.header.image.naming_bytes = tensors_naming_bytes(plan.header.image.regions);
    plan.index = add_index(plan.header);
    plan.header.image.cuts = plan.header.cuts.size();
    const ImageLayout layout = image_layout(encode_image_header(plan.header).size(), plan.header.image, plan.header.block_bytes);
    plan.header.checksums_offset = layout.checksums_offset;
    plan.header.data_offset = layout.data_offset;
    plan.slot_bytes = layout.file_bytes;
    TRY(check_image_header(plan.header));
    plan.encoded = encode_image_header(plan.header);
    return plan;
}

std::uint64_t slot_bytes_ahead(const RegionTable& regions, std::uint64_t block_bytes) {
    constexpr std::uint64_t a_region = 512, a_description = 256;  // in the header or the index, without names and shapes; and in the checksums' table
    std::uint64_t memory = 0, about = region_index_align + 2 * 4096;
    for (const ProtectedRegion& each : regions.all()) {
        if (each.kind == RegionKind::memory) memory += round_up(each.bytes, memory_align_bytes);
        about += a_region + 2 * each.name.size() + 8 * (each.shape.size() + each.global_shape.size() + each.global_offset.size());
        for (const DescribedArray& array : each.described) about += a_description + array.name.size() + 8 * array.shape.size();
    }
    if (memory == 0) return 0;
    const std::uint64_t units = (memory + about) / block_bytes + 2;
    return image_header_offset + round_up(memory + about + 8 * units, 4096);
}

Status capture(const CapturePlan& plan, const RegionTable& regions, SlotMaps::Map& slot, bool make_checksums) {
    image_set_invalid(slot.base);
    std::byte* const table = slot.base + plan.header.checksums_offset;
    if (!plan.header.cuts.empty()) std::memcpy(table + 8 * image_units(plan.header), plan.header.cuts.data(), 8 * plan.header.cuts.size());
    ImageWriter writer(slot.base + plan.header.data_offset, plan.header, make_checksums ? table : nullptr);
    TRY(fill(plan, regions, slot, writer));
    // The rest of the last page: direct I/O reads whole pages, and what an older image left there is nobody's business.
    const std::uint64_t end = plan.header.data_offset + plan.header.image.bytes;
    std::memset(slot.base + end, 0, plan.slot_bytes - end);
    std::memcpy(slot.base + image_header_offset, plan.encoded.data(), plan.encoded.size());
    if (make_checksums) image_set_checksummed(slot.base, proof_of(plan.header, table));
    image_seal(slot.base);
    return {};
}

}  // namespace cairn
