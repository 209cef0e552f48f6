#include "cli/sample_image.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "world/real/memory.hpp"

namespace cairn::cli {

namespace {
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t share_least = 8 << 20;     // less of a file misses some of its variables, and the same ones in all files
constexpr std::uint64_t stretch_wanted = 4 << 20;  // a run, so that few runs are of two stretches
constexpr std::uint64_t stretches_most = 64, stretches_least = 4, stretch_least = 256 << 10;  // one place says little of all
}  // namespace

void SampleImage::append(BufferPtr buffer, std::uint64_t offset, std::uint64_t length, const std::vector<NumberArray>& arrays) {
    for (NumberArray& array : within(arrays, offset, length)) {
        if (arrays_.size() == extents_max) break;
        array.offset += bytes_;
        described_bytes_ += array.length;
        arrays_.push_back(array);
    }
    stretches_.push_back({std::move(buffer), offset, length, bytes_});
    bytes_ += length;
}

void SampleImage::set_keys(const std::vector<std::uint32_t>& keys) {
    for (std::size_t i = 0; i < std::min(keys.size(), arrays_.size()); ++i) arrays_[i].key = keys[i];
}

void SampleImage::copy(std::uint64_t offset, std::span<std::byte> into) const {
    const auto ends_before = [](const Stretch& stretch, std::uint64_t at) { return stretch.at + stretch.length <= at; };
    auto stretch = std::lower_bound(stretches_.begin(), stretches_.end(), offset, ends_before);
    for (std::size_t done = 0; done < into.size(); ++stretch) {
        CAIRN_CHECK(stretch != stretches_.end());
        const std::uint64_t from = offset + done - stretch->at, length = std::min<std::uint64_t>(stretch->length - from, into.size() - done);
        std::memcpy(into.data() + done, stretch->buffer->data() + stretch->offset + from, length);
        done += length;
    }
}

bool SampleImage::has_lost_bytes() const {
    return std::any_of(stretches_.begin(), stretches_.end(), [](const Stretch& stretch) { return stretch.buffer->has_lost_bytes(); });
}

std::vector<std::uint64_t> sample_shares(const std::vector<std::uint64_t>& file_bytes, std::uint64_t bytes_max) {
    double all = 0;
    for (const std::uint64_t bytes : file_bytes) all += static_cast<double>(bytes);
    if (all <= static_cast<double>(bytes_max)) return file_bytes;
    const double of_each = static_cast<double>(bytes_max) / all;
    std::vector<std::uint64_t> shares;
    double due = 0;
    std::uint64_t left = bytes_max;
    for (const std::uint64_t bytes : file_bytes) {
        due += static_cast<double>(bytes) * of_each;
        const auto whole = static_cast<std::uint64_t>(std::min(due, static_cast<double>(left)));
        std::uint64_t share = whole >= bytes ? bytes : whole / page * page;
        if (share < std::min({bytes, share_least, bytes_max})) share = 0;
        else due = share == bytes ? due - static_cast<double>(share) : 0;  // what is left of a page counts no more, so that files of one length give as much
        left -= share;
        shares.push_back(share);
    }
    return shares;
}

Stretches sample_stretches(std::uint64_t file_bytes, std::uint64_t share) {
    if (share >= file_bytes) return {{0, file_bytes}};
    const std::uint64_t count = std::clamp(share / stretch_wanted, std::clamp<std::uint64_t>(share / stretch_least, 1, stretches_least), stretches_most), length = share / count / page * page, apart = file_bytes / count;
    Stretches stretches;
    for (std::uint64_t i = 0; i < count && length > 0; ++i) stretches.emplace_back((i * apart + (apart - length) / 2) / page * page, length);
    return stretches;
}

Status append_file(SampleImage& image, const std::string& path, const Describers& describers, std::uint64_t share) {
    TRY_ASSIGN(const BufferPtr file, map_file(path, false, [](const std::function<void()>& unmap) { unmap(); }));
    const Result<Description> description = describe_file({path, ByteView(file->data(), file->size()), path, 0}, describers);
    const std::vector<NumberArray> arrays = description.ok() ? arrays_of(description->extents, describers.names) : std::vector<NumberArray>();
    for (const auto& [offset, length] : sample_stretches(file->size(), share))
        if (length > 0) image.append(file, offset, length, arrays);
    if (file->has_lost_bytes()) return Status(Code::io_error, path + ": became shorter while it was read, or the disk does not give it");
    return {};
}

}  // namespace cairn::cli
