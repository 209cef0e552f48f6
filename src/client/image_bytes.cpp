#include "client/image_bytes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "client/files.hpp"

namespace cairn {

namespace {

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

}  // namespace

std::vector<Stretch> stretches_of(const CapturePlan& plan, const RegionTable& regions) {
    std::vector<Stretch> stretches;
    std::uint64_t at = 0;
    const auto zeros_to = [&](std::uint64_t offset) {
        if (offset > at) stretches.push_back({Stretch::Kind::zeros, at, offset - at, nullptr, nullptr});
        at = offset;
    };
    std::size_t i = 0;
    for (const ProtectedRegion& region : regions.all()) {
        const Region& laid = plan.header.image.regions[i++];
        zeros_to(laid.offset);
        const auto kind = region.kind == RegionKind::memory ? Stretch::Kind::memory : region.kind == RegionKind::callback ? Stretch::Kind::callback : Stretch::Kind::file;
        stretches.push_back({kind, at, laid.length, region.data, &region});
        at += laid.length;
    }
    zeros_to(plan.header.image.bytes - plan.index.size());
    if (!plan.index.empty()) stretches.push_back({Stretch::Kind::memory, at, plan.index.size(), plan.index.data(), nullptr});
    return stretches;
}

// By reading, into a slot, too: blocks shared with the file (copy_file_range makes such, where both lie on a file system that can) would have to be allocated when a
// later image is written over them, and a full disk is SIGBUS then.
Status RoutedFile::read(std::uint64_t offset, std::span<std::byte> into) {
    const auto of = [&](const char* what) { return "region \"" + region_.name + "\": can not " + what + " routed file " + region_.path; };
    const files::Descriptor file(::open(region_.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return Status::from_errno(errno, of("open"));
    if (!before_) {
        struct stat before = {};
        if (::fstat(file.get(), &before) != 0) return Status::from_errno(errno, of("look at"));
        let_tick_pass(before);
        before_ = before;
    }
    for (std::uint64_t done = 0; done < into.size();) {
        const ssize_t got = ::pread(file.get(), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Status::from_errno(errno, of("read"));
        if (got == 0) return {Code::io_error, of("read") + ": it became shorter while it was copied; checkpoint after it is complete"};
        done += static_cast<std::uint64_t>(got);
    }
    struct stat after = {};
    if (::fstat(file.get(), &after) != 0) return Status::from_errno(errno, of("look at"));
    if (static_cast<std::uint64_t>(after.st_size) != bytes_) return {Code::io_error, of("copy") + ": it grew while it was copied; checkpoint after it is complete"};
    const bool is_the_same = before_->st_ino == after.st_ino && same_time(before_->st_mtim, after.st_mtim) && same_time(before_->st_ctim, after.st_ctim);
    if (!is_the_same) return {Code::io_error, of("copy") + ": it was written while it was copied; checkpoint after it is complete, and let nobody write it meanwhile"};
    return {};
}

Status ImageBytes::check() const {
    for (const Stretch& each : stretches_)
        if (each.kind == Stretch::Kind::callback)
            return {Code::unsupported, "region \"" + each.region->name + "\" is a callback region, whose bytes can not be fetched piece by piece, nor again: with capture.mode = through protect memory or " +
                                           "route files, or set capture.mode = scratch"};
    return {};
}

Status ImageBytes::read(std::uint64_t offset, std::span<std::byte> into) {
    if (offset > bytes_ || into.size() > bytes_ - offset)
        return invalid_argument("bytes " + std::to_string(offset) + "+" + std::to_string(into.size()) + " of an image of " + std::to_string(bytes_) + " were asked for");
    const auto ends_before = [](std::uint64_t at, const Stretch& each) { return at < each.offset + each.length; };
    for (auto each = std::upper_bound(stretches_.begin(), stretches_.end(), offset, ends_before); !into.empty(); ++each) {
        const std::uint64_t from = offset - each->offset;
        const std::span<std::byte> here = into.first(std::min<std::uint64_t>(into.size(), each->length - from));
        if (here.empty()) continue;  // a region of no bytes
        if (each->kind == Stretch::Kind::zeros) std::memset(here.data(), 0, here.size());
        if (each->kind == Stretch::Kind::memory) std::memcpy(here.data(), static_cast<const std::byte*>(each->data) + from, here.size());
        if (each->kind == Stretch::Kind::file) TRY(files_.try_emplace(each->region, *each->region, each->length).first->second.read(from, here));
        if (each->kind == Stretch::Kind::callback) return {Code::internal, "a callback region was asked for"};
        offset += here.size();
        into = into.subspan(here.size());
    }
    return {};
}

}  // namespace cairn
