// Status: names of the codes, errno to code, context.
#include "base/status.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace cairn {

std::string_view code_name(Code code) noexcept {
    static constexpr std::array<std::string_view, 14> names = {
        "ok",          "invalid argument", "not found", "already exists", "out of space", "I/O error",   "corrupt",
        "unavailable", "deadline passed",  "superseded", "cancelled",     "permission",   "unsupported", "internal"};
    const auto index = static_cast<std::size_t>(code);
    return index < names.size() ? names[index] : "unknown";
}

std::string_view cause_of(Code code) noexcept {
    switch (code) {
        case Code::out_of_space: return "capacity";
        case Code::io_error: case Code::corrupt: case Code::unavailable: case Code::deadline: case Code::internal: return "fault";
        default: return {};
    }
}

Status Status::from_errno(int error, std::string what) {
    Code code = Code::io_error;
    switch (error) {
        case ENOENT: case ENOTDIR: code = Code::not_found; break;
        case EEXIST: case ENOTEMPTY: code = Code::already_exists; break;
        case ENOSPC: case EDQUOT: case EFBIG: code = Code::out_of_space; break;
        case EACCES: case EPERM: case EROFS: code = Code::permission; break;
        // Not EINVAL: file systems say that of names whose server is away (GlusterFS), and our own calls are not what is wrong with them.
        case ENAMETOOLONG: case EISDIR: code = Code::invalid_argument; break;
        case ETIMEDOUT: code = Code::deadline; break;
        case ECONNREFUSED: case ECONNRESET: case EHOSTUNREACH: case ENOTCONN: case EPIPE: code = Code::unavailable; break;
        case ENOSYS: case EOPNOTSUPP: code = Code::unsupported; break;
        default: break;
    }
    char buffer[128];
    return {code, std::move(what) + ": " + strerror_r(error, buffer, sizeof buffer)};
}

std::string Status::to_string() const {
    if (ok()) return "ok";
    return std::string(code_name(code_)) + ": " + text_;
}

Status Status::within(std::string_view context) const& { return Status(*this).within(context); }

Status Status::within(std::string_view context) && {
    // Two layers may know the same path: it is named once.
    const bool named = context.find('/') != std::string_view::npos && text_.find(context) != std::string::npos;
    if (!ok() && !named) text_ = std::string(context) + ": " + text_;
    return std::move(*this);
}

void check_failed(const char* expression, const char* file, int line) noexcept {
    std::fprintf(stderr, "cairn: defect at %s:%d: %s does not hold\n", file, line, expression);
    std::abort();
}

}  // namespace cairn
