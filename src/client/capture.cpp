#include "client/capture.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/checksum.hpp"
#include "client/files.hpp"
#include "client/guarded.hpp"
#include "format/region_index.hpp"
#include "format/safetensors.hpp"
#include "model/checksum_units.hpp"

namespace cairn {

namespace {

// Writes an image front to back, making the checksum of each unit when its last byte is in place, while it still is in
// the cache.
class ImageWriter {
  public:
    ImageWriter(std::byte* data, const ImageHeader& header, std::byte* table)
        : data_(data), ends_(table ? unit_ends({header.block_bytes, 0, header.cuts}, header.image.bytes) : std::vector<std::uint64_t>()), table_(table) {}

    void copy(const void* from, std::uint64_t bytes) {
        const auto* source = static_cast<const std::byte*>(from);
        while (bytes > 0) {
            // Without checksums in one go: memcpy knows best how to move much.
            const std::uint64_t now = within_unit(bytes);
            std::memcpy(data_ + at_, source, now);
            advance(now);
            source += now;
            bytes -= now;
        }
    }
    void zero_to(std::uint64_t offset) {
        while (at_ < offset) {
            const std::uint64_t now = within_unit(offset - at_);
            std::memset(data_ + at_, 0, now);
            advance(now);
        }
    }
    std::byte* place() const noexcept { return data_ + at_; }
    // Somebody else wrote so many bytes at place().
    void wrote(std::uint64_t bytes) {
        while (bytes > 0) {
            const std::uint64_t now = within_unit(bytes);
            advance(now);
            bytes -= now;
        }
    }

  private:
    // As many bytes as the unit has left, unless there are no checksums to make.
    std::uint64_t within_unit(std::uint64_t bytes) const { return table_ ? std::min(bytes, ends_[unit_] - at_) : bytes; }
    void advance(std::uint64_t bytes) {
        at_ += bytes;
        if (!table_ || at_ != ends_[unit_]) return;
        const std::uint64_t begin = unit_ == 0 ? 0 : ends_[unit_ - 1];
        const std::uint64_t sum = checksum({data_ + begin, static_cast<std::size_t>(at_ - begin)});
        std::memcpy(table_ + 8 * unit_, &sum, sizeof sum);
        ++unit_;
    }

    std::byte* data_;
    std::vector<std::uint64_t> ends_;  // of units, in the image
    std::byte* table_;                 // null: no checksums
    std::uint64_t at_ = 0;
    std::size_t unit_ = 0;
};

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

// A file's times go forward by ticks of the kernel's clock. What is written in the tick in which they were set last leaves them as they are, so that tick ends before anything is read.
void let_tick_pass(const struct stat& about) {
    constexpr std::int64_t tick_ns = 10'000'000;  // CONFIG_HZ = 100, the slowest
    timespec now = {};
    if (::clock_gettime(CLOCK_REALTIME, &now) != 0) return;
    const auto age_ns = [&](const timespec& time) { return (now.tv_sec - time.tv_sec) * std::int64_t{1'000'000'000} + now.tv_nsec - time.tv_nsec; };
    const std::int64_t youngest_ns = std::min(age_ns(about.st_mtim), age_ns(about.st_ctim));
    if (youngest_ns < 0 || youngest_ns >= tick_ns) return;  // one from the future is another machine's: its ticks are not known here
    const timespec left = {0, tick_ns - youngest_ns};
    ::nanosleep(&left, nullptr);
}

// A routed file into the slot, by reading into the mapping: blocks shared with the file (copy_file_range makes such, where both lie on a file
// system that can) would have to be allocated when a later image is written over them, and a full disk is SIGBUS then.
Status copy_file(const ProtectedRegion& region, std::uint64_t bytes, SlotMaps::Map& slot, std::uint64_t slot_offset) {
    const auto of = [&](const char* what) {
        return "region \"" + region.name + "\": can not " + what + " routed file " + region.path;
    };
    const files::Descriptor file(::open(region.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return Status::from_errno(errno, of("open"));
    struct stat before = {};
    if (::fstat(file.get(), &before) != 0) return Status::from_errno(errno, of("look at"));
    let_tick_pass(before);
    for (std::uint64_t done = 0; done < bytes;) {
        const ssize_t got = ::pread(file.get(), slot.base + slot_offset + done, bytes - done, static_cast<off_t>(done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Status::from_errno(errno, of("read"));
        if (got == 0)
            return {Code::io_error,
                    of("read") + ": it became shorter while it was copied; checkpoint after it is complete"};
        done += static_cast<std::uint64_t>(got);
    }
    struct stat after = {};
    if (::fstat(file.get(), &after) != 0) return Status::from_errno(errno, of("look at"));
    if (static_cast<std::uint64_t>(after.st_size) != bytes)
        return {Code::io_error, of("copy") + ": it grew while it was copied; checkpoint after it is complete"};
    if (!same_time(before.st_mtim, after.st_mtim) || !same_time(before.st_ctim, after.st_ctim))
        return {Code::io_error, of("copy") + ": it was written while it was copied; checkpoint after it is complete, and let nobody write it meanwhile"};
    return {};
}

Status fill(const CapturePlan& plan, const RegionTable& regions, SlotMaps::Map& slot, ImageWriter& writer) {
    std::size_t i = 0;
    for (const ProtectedRegion& region : regions.all()) {
        const Region& laid = plan.header.image.regions[i++];
        writer.zero_to(laid.offset);
        switch (region.kind) {
            case RegionKind::memory:
                writer.copy(region.data, laid.length);
                break;
            case RegionKind::callback:
                TRY(call_application("region \"" + region.name + "\": its serialise callback",
                                     [&] { return region.serialise(region.context, writer.place(), laid.length); }));
                writer.wrote(laid.length);
                break;
            case RegionKind::file:
                TRY(copy_file(region, laid.length, slot, plan.header.data_offset + laid.offset));
                writer.wrote(laid.length);
                break;
        }
    }
    writer.zero_to(plan.header.image.bytes - plan.index.size());
    writer.copy(plan.index.data(), plan.index.size());
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
