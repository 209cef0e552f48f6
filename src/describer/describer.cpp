#include "describer/describer.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>

#include "describe/file.hpp"
#include "describer/child.hpp"
#include "describer/talk.hpp"

namespace cairn {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds limit_max = std::chrono::hours(1), dying_max{500};

}  // namespace

std::string describer_program() {
    char self[4096];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
    const std::string_view path(self, length > 0 && static_cast<std::size_t>(length) < sizeof self ? static_cast<std::size_t>(length) : 0);
    const std::size_t slash = path.rfind('/');
    return (slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash + 1))) + "cairn-describer";
}

Describer::Describer(std::string program, Patience patience) : program_(std::move(program)), patience_(patience) {}
Describer::~Describer() = default;

Result<Description> Describer::describe(const std::string& path, std::uint64_t offset, std::uint64_t length, milliseconds limit) {
    limit = std::min(limit, limit_max);
    {
        std::unique_lock lock(mutex_);
        if (!turn_.wait_until(lock, Clock::now() + limit, [this] { return !is_busy_; })) return unavailable("other files are being described");
        is_busy_ = true;
    }
    Result<std::vector<Extent>> extents = std::vector<Extent>();
    try {
        extents = ask(path, offset, length, Clock::now() + limit);
    } catch (const std::bad_alloc&) {
        drop_child();  // half of what it says may have been read
        extents = Status(Code::out_of_space, "no memory for what " + program_ + " says");
    }
    {
        const std::scoped_lock lock(mutex_);
        is_busy_ = false;
    }
    turn_.notify_one();
    if (!extents.ok()) return std::move(extents).status().within("describing " + path);
    return Description{"hdf5", sound(std::move(extents).value(), length)};
}

Result<std::vector<Extent>> Describer::ask(const std::string& path, std::uint64_t offset, std::uint64_t length, Clock::time_point deadline) {
    TRY(have_child());
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    const Bytes request = describer::request_bytes({path, offset, length, static_cast<std::uint64_t>(std::max<long long>(left, 1))});
    if (request.size() > describer::request_bytes_max) return invalid_argument("a path that is too long");
    Code code = Code::ok;
    Result<Bytes> body = exchange(request, code, deadline);
    Result<std::vector<Extent>> extents = body.ok() && code == Code::ok ? describer::read_extents(body.value()) : Result<std::vector<Extent>>(std::vector<Extent>());
    if (!body.ok() || !extents.ok()) {
        const Status why = body.ok() ? extents.status() : body.status();
        failed();
        // That the program is out of its mind says nothing of the file.
        return why.code() == Code::deadline ? why : unavailable(program_ + ": " + why.text());
    }
    failures_ = 0;
    if (code == Code::ok) return extents;
    // A library that met what it can not read may have kept something of it. Other failures are from before it saw the file.
    if (code == Code::corrupt || code == Code::out_of_space) drop_child();
    return Status(code, std::string(as_text(body.value())));
}

Status Describer::have_child() {
    if (is_leaving_ && !drop_child()) return unavailable(program_ + " was killed, and the kernel does not let it go");
    if (child_ && !child_->is_silent()) drop_child();  // it died while nobody asked it, and nobody's request is lost
    if (child_) return {};
    if (Clock::now() < not_before_) return unavailable(program_ + " failed " + std::to_string(failures_) + " times in a row, and is not tried again yet");
    if (::access(program_.c_str(), X_OK) != 0) return unavailable("there is no program " + program_ + " (Cairn was built without libhdf5, or it is installed elsewhere)");
    Result<std::unique_ptr<describer::Child>> started = describer::Child::start(program_);
    if (!started.ok()) {
        failed();
        return unavailable(started.status().text());
    }
    child_ = std::move(started).value();
    pid_ = child_->pid();
    return {};
}

// The body of its answer; `code` is what its head says.
Result<Bytes> Describer::exchange(ByteView request, Code& code, Clock::time_point deadline) {
    TRY(child_->send(request, deadline));
    std::array<std::byte, describer::head_bytes> bytes;
    TRY(child_->receive(bytes, deadline));
    const Result<describer::Head> head = describer::answer_head(bytes);
    if (!head.ok()) return head.status();
    Bytes body(head.value().bytes);
    TRY(child_->receive(body, deadline));
    code = static_cast<Code>(head.value().code);
    return body;
}

void Describer::failed() {
    drop_child();
    if (++failures_ < patience_.failures) return;
    const unsigned doubled = std::min(failures_ - patience_.failures, 20u);
    not_before_ = Clock::now() + std::min(patience_.pause_max, patience_.pause * (1 << doubled));
}

bool Describer::drop_child() {
    pid_ = 0;
    is_leaving_ = child_ && !child_->end(dying_max);
    if (!is_leaving_) child_.reset();
    return !is_leaving_;
}

}  // namespace cairn
