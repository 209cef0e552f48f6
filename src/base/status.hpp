// Status and Result<T>: how every layer says what happened.
//
// One code a program can branch on, one text a person can act on. Context is added once per layer with
// `within("opening part-0003")`, outermost first. Exceptions stop at the edges (asio, bindings); nothing in the core throws.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace cairn {

// Values are part of the C ABI (cairn.h) and of the command's exit codes: append, never renumber.
enum class Code : std::uint8_t {
    ok = 0,
    invalid_argument = 1,  // the caller asked for something that can not be
    not_found = 2,         // no such name, version, region, file
    already_exists = 3,    // published by somebody else, or protected twice
    out_of_space = 4,      // scratch or persistent is full
    io_error = 5,          // the operating system refused an operation
    corrupt = 6,           // bytes are not what their checksum says, or not our format
    unavailable = 7,       // a daemon, a peer or a rank can not be reached, or was lost
    deadline = 8,          // the time allowed ran out; the operation may still finish
    superseded = 9,        // a newer open, or going back, replaced this one
    cancelled = 10,        // somebody asked for it to stop
    permission = 11,       // not ours to touch
    unsupported = 12,      // another version of the format or the protocol
    internal = 13,         // a defect in Cairn
};

std::string_view code_name(Code code) noexcept;
// Of a failure, for who decides what becomes of a node: "capacity" where something is full, and the node is healthy; "fault" where something is
// broken, lost or silent; nothing where somebody asked for it, or asked for what can not be.
std::string_view cause_of(Code code) noexcept;

class [[nodiscard]] Status {
  public:
    Status() noexcept = default;
    Status(Code code, std::string text) : code_(code), text_(std::move(text)) {}

    static Status ok_status() noexcept { return {}; }
    // From errno: maps ENOSPC, ENOENT, EEXIST, EACCES, ... to a code and appends the system's text.
    static Status from_errno(int error, std::string what);

    bool ok() const noexcept { return code_ == Code::ok; }
    explicit operator bool() const noexcept { return ok(); }
    Code code() const noexcept { return code_; }
    const std::string& text() const noexcept { return text_; }
    // "corrupt: part-0003-of-0016: footer checksum ..."
    std::string to_string() const;

    // The same status with a layer's context in front of the text; ok stays ok.
    Status within(std::string_view context) const&;
    Status within(std::string_view context) &&;

  private:
    Code code_ = Code::ok;
    std::string text_;
};

inline Status invalid_argument(std::string text) { return {Code::invalid_argument, std::move(text)}; }
inline Status not_found(std::string text) { return {Code::not_found, std::move(text)}; }
inline Status corrupt(std::string text) { return {Code::corrupt, std::move(text)}; }
inline Status unavailable(std::string text) { return {Code::unavailable, std::move(text)}; }
inline Status deadline_passed(std::string text) { return {Code::deadline, std::move(text)}; }

// What a file system says that is away for the moment; and one that is away or full.
inline bool is_away(const Status& status) noexcept {
    return status.code() == Code::io_error || status.code() == Code::unavailable || status.code() == Code::deadline;
}
inline bool may_pass(const Status& status) noexcept { return is_away(status) || status.code() == Code::out_of_space; }

// A programmer's error, never a peer's, a disk's or a user's: stays on in release builds.
[[noreturn]] void check_failed(const char* expression, const char* file, int line) noexcept;
#define CAIRN_CHECK(expression) ((expression) ? void() : ::cairn::check_failed(#expression, __FILE__, __LINE__))

template <class T>
class [[nodiscard]] Result {
    static_assert(!std::is_same_v<T, Status>);

  public:
    Result(T value) : state_(std::in_place_index<1>, std::move(value)) {}  // NOLINT: implicit on purpose
    Result(Status status) : state_(std::in_place_index<0>, std::move(status)) {  // NOLINT
        CAIRN_CHECK(!std::get<0>(state_).ok());
    }

    bool ok() const noexcept { return state_.index() == 1; }
    explicit operator bool() const noexcept { return ok(); }
    Status status() const& { return ok() ? Status{} : std::get<0>(state_); }
    Status status() && { return ok() ? Status{} : std::move(std::get<0>(state_)); }
    Code code() const noexcept { return ok() ? Code::ok : std::get<0>(state_).code(); }

    T& value() & { CAIRN_CHECK(ok()); return std::get<1>(state_); }
    const T& value() const& { CAIRN_CHECK(ok()); return std::get<1>(state_); }
    T&& value() && { CAIRN_CHECK(ok()); return std::get<1>(std::move(state_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    T value_or(T other) && { return ok() ? std::get<1>(std::move(state_)) : std::move(other); }

  private:
    std::variant<Status, T> state_;
};

// Early return on failure, in ordinary functions (TRY) and in coroutines (CO_TRY).
#define CAIRN_CONCAT_(a, b) a##b
#define CAIRN_CONCAT(a, b) CAIRN_CONCAT_(a, b)
#define TRY(expression)                                                   \
    do {                                                                  \
        if (::cairn::Status try_status_ = (expression); !try_status_.ok()) return try_status_; \
    } while (false)
#define CO_TRY(expression)                                                \
    do {                                                                  \
        ::cairn::Status try_status_ = (expression);                       \
        if (!try_status_.ok()) co_return try_status_;                     \
    } while (false)
#define TRY_ASSIGN_(result, target, expression) \
    auto result = (expression);                 \
    if (!result.ok()) return std::move(result).status(); \
    target = std::move(result).value()
#define TRY_ASSIGN(target, expression) TRY_ASSIGN_(CAIRN_CONCAT(try_result_, __LINE__), target, expression)
#define CO_TRY_ASSIGN_(result, target, expression) \
    auto result = (expression);                    \
    if (!result.ok()) co_return std::move(result).status(); \
    target = std::move(result).value()
#define CO_TRY_ASSIGN(target, expression) CO_TRY_ASSIGN_(CAIRN_CONCAT(try_result_, __LINE__), target, expression)

}  // namespace cairn
