// One region being restored. Bytes for memory go to where they belong at once, those for a callback into a buffer, those of a routed file into a
// new file beside it; what the application can see of the last two changes in finish() only.
#include "client/restore_target.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "client/guarded.hpp"
#include "format/names.hpp"

namespace cairn {

RestoreTarget::RestoreTarget(const ProtectedRegion& region, const Region& kept) : region_(&region), kept_(kept) {}

RestoreTarget::~RestoreTarget() {
    if (!aside_.empty()) ::unlink(aside_.c_str());
}

Status RestoreTarget::prepare(const MemoryMap& map) {
    switch (region_->kind) {
        case RegionKind::memory:
            if (map.writable(region_->data, region_->bytes)) return {};
            return invalid_argument("region \"" + region_->name + "\" is not mapped, writable memory (" +
                                    std::to_string(region_->bytes) + " bytes)");
        case RegionKind::callback:
            bytes_.resize(kept_.length);
            return {};
        case RegionKind::file:
            break;
    }
    TRY_ASSIGN(const Id128 unique, files::random_id());
    const std::string aside = region_->path.substr(0, region_->path.rfind('/') + 1) + temporary_file_name(unique);
    file_ = files::Descriptor(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file_)
        return Status::from_errno(errno, "region \"" + region_->name + "\": can not write beside " + region_->path);
    aside_ = aside;
    struct stat about = {};
    if (::stat(region_->path.c_str(), &about) == 0) static_cast<void>(::fchmod(file_.get(), about.st_mode & 07777));
    return {};
}

Slice RestoreTarget::memory() {
    if (region_->kind == RegionKind::file || kept_.length == 0) return {};
    std::byte* const data = region_->kind == RegionKind::memory ? static_cast<std::byte*>(region_->data) : bytes_.data();
    return Slice::whole(std::make_shared<BorrowedMemory>(data, kept_.length));
}

Status RestoreTarget::take(std::uint64_t at, ByteView data) {
    if (region_->kind != RegionKind::file) {
        std::byte* const place = region_->kind == RegionKind::memory ? static_cast<std::byte*>(region_->data) : bytes_.data();
        std::memcpy(place + at, data.data(), data.size());
        return {};
    }
    for (std::size_t done = 0; done < data.size();) {
        const ssize_t wrote = ::pwrite(file_.get(), data.data() + done, data.size() - done, static_cast<off_t>(at + done));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0)
            return {Code::cancelled,
                    Status::from_errno(wrote < 0 ? errno : ENOSPC,
                                       "region \"" + region_->name + "\": can not write beside " + region_->path)
                        .text()};
        done += static_cast<std::size_t>(wrote);
    }
    return {};
}

Status RestoreTarget::finish() {
    if (region_->kind == RegionKind::callback) {
        TRY(call_application("region \"" + region_->name + "\": its deserialise callback",
                             [&] { return region_->deserialise(region_->context, bytes_.data(), bytes_.size()); }));
    } else if (region_->kind == RegionKind::file) {
        if (::rename(aside_.c_str(), region_->path.c_str()) != 0)
            return Status::from_errno(errno,
                                      "region \"" + region_->name + "\": can not put " + region_->path + " in place");
        aside_.clear();
    }
    return {};
}

}  // namespace cairn
