#include "world/real/checksummed_read.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>

namespace cairn {

namespace {

constexpr std::size_t staged_bytes = 256 << 10;  // fits into the second cache of most processors; larger ones do not: 128 KiB to 256 KiB were best of 32 KiB to 1 MiB

// Kept for as long as the thread, so that no page of it is new to it.
std::byte* staging() {
    struct alignas(4096) Staging {
        std::byte bytes[staged_bytes];
    };
    thread_local const auto mine = std::make_unique<Staging>();
    return mine->bytes;
}

}  // namespace

void ChecksummedRead::run() {
    std::byte* const staged = staging();
    while (at_ < length_) {
        const ssize_t got = ::pread(file_->descriptor(), staged, std::min<std::uint64_t>(staged_bytes, length_ - at_), static_cast<off_t>(offset_ + at_));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) error_ = errno;
        if (got <= 0 || !pass({staged, static_cast<std::size_t>(got)})) return;
    }
}

// False: nobody waits any more.
bool ChecksummedRead::pass(ByteView bytes) {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return false;
    while (!bytes.empty()) {
        std::byte* to = nullptr;
        const ByteView now = before_destination(bytes.first(std::min<std::uint64_t>(bytes.size(), ends_[unit_] - at_)), to);
        sum_.add(now, to);
        at_ += now.size();
        bytes = bytes.subspan(now.size());
        if (at_ != ends_[unit_]) continue;
        sums_.push_back(sum_.take());
        ++unit_;
    }
    return true;
}

// As many of them as go to the same place, or nowhere.
ByteView ChecksummedRead::before_destination(ByteView bytes, std::byte*& to) {
    while (destination_ < into_.size() && into_[destination_].at + into_[destination_].into.length <= at_) ++destination_;
    if (destination_ == into_.size()) return bytes;
    const Destination& next = into_[destination_];
    if (at_ < next.at) return bytes.first(std::min<std::uint64_t>(bytes.size(), next.at - at_));
    to = next.into.data() + (at_ - next.at);
    return bytes.first(std::min<std::uint64_t>(bytes.size(), next.at + next.into.length - at_));
}

void ChecksummedRead::close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    into_.clear();
}

Result<std::vector<std::uint64_t>> ChecksummedRead::take(const std::string& what) {
    if (error_ != 0) return Status::from_errno(error_, what);
    if (at_ < length_) return corrupt(file_->path() + ": ends at byte " + std::to_string(offset_ + at_) + ", " + std::to_string(length_ - at_) + " bytes short");
    return std::move(sums_);
}

}  // namespace cairn
