// Cairn's C++20 interface: header-only, over cairn.h, whose rules (statuses, collective calls, threads, fork) hold here
// too. Nothing throws but std::bad_alloc: a checkpoint that failed must not end the application because nobody caught
// it.
//
//     auto session = cairn::Session::open({.name = "heat"});
//     if (!session) return report(session.status());
//     session->protect("u", u);
//     auto from = session->restore();                       // the version, or why not: not_found is a fresh start
//     ...
//     if (auto status = session->checkpoint(step); !status) report(status);
#ifndef CAIRN_CAIRN_HPP
#define CAIRN_CAIRN_HPP

#include <chrono>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cairn.h"

namespace cairn {
inline namespace v1 {

using Version = std::uint64_t;
inline constexpr Version newest = CAIRN_NEWEST;

// Code and text of one call. True when it succeeded.
class [[nodiscard]] Status {
  public:
    Status() = default;
    Status(int code, std::string text) : code_(code), text_(std::move(text)) {}

    explicit operator bool() const noexcept { return code_ == CAIRN_OK; }
    bool ok() const noexcept { return code_ == CAIRN_OK; }
    int code() const noexcept { return code_; }  // CAIRN_OK, CAIRN_NOT_FOUND, ...
    const char* name() const noexcept { return cairn_status_name(code_); }
    const std::string& text() const noexcept { return text_; }

  private:
    int code_ = CAIRN_OK;
    std::string text_;
};

// A value, or the status that says why there is none. Asking a failed one for its value throws std::bad_variant_access.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::move(value)) {}         // NOLINT: implicit on purpose
    Result(Status status) : state_(std::move(status)) {}  // NOLINT

    explicit operator bool() const noexcept { return std::holds_alternative<T>(state_); }
    int code() const noexcept { return *this ? CAIRN_OK : std::get<Status>(state_).code(); }
    Status status() const { return *this ? Status() : std::get<Status>(state_); }
    T& operator*() { return std::get<T>(state_); }
    const T& operator*() const { return std::get<T>(state_); }
    T* operator->() { return &std::get<T>(state_); }
    const T* operator->() const { return &std::get<T>(state_); }

  private:
    std::variant<T, Status> state_;
};

enum class Level : int { captured = CAIRN_CAPTURED, sealed = CAIRN_SEALED, committed = CAIRN_COMMITTED };

// cairn_options with owners. Empty strings mean the default.
struct Options {
    std::string name;
    std::uint32_t rank = 0;
    std::uint32_t ranks = 1;
    std::string job = {};
    std::string node = {};
    std::string config_file = {};
    std::vector<std::string> overrides = {};  // "section.key=value"
};

// Cairn's type of T; CAIRN_BYTES for trivially copyable types it does not know.
template <class T>
constexpr int type_of() {
    if constexpr (std::is_same_v<T, float>)
        return CAIRN_F32;
    else if constexpr (std::is_same_v<T, double>)
        return CAIRN_F64;
    else if constexpr (std::is_same_v<T, std::complex<float>>)
        return CAIRN_C64;
    else if constexpr (std::is_same_v<T, std::complex<double>>)
        return CAIRN_C128;
    else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8) {
        constexpr int base = sizeof(T) == 1   ? CAIRN_I8
                             : sizeof(T) == 2 ? CAIRN_I16
                             : sizeof(T) == 4 ? CAIRN_I32
                                              : CAIRN_I64;
        return std::is_signed_v<T> ? base : base + 1;
    } else
        return CAIRN_BYTES;
}

// A region that is not plain memory. size() bytes; write fills all of its span; read takes verified bytes. False, or an
// exception, refuses.
struct Callbacks {
    std::function<std::uint64_t()> size;
    std::function<bool(std::span<std::byte>)> write;
    std::function<bool(std::span<const std::byte>)> read;
};

namespace detail {

struct COptions {
    std::vector<const char*> overrides;
    cairn_options options = CAIRN_OPTIONS;
    explicit COptions(const Options& from) {
        const auto text = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
        for (const std::string& each : from.overrides) overrides.push_back(each.c_str());
        overrides.push_back(nullptr);
        options.name = text(from.name);
        options.rank = from.rank;
        options.ranks = from.ranks;
        options.job = text(from.job);
        options.node = text(from.node);
        options.config_file = text(from.config_file);
        options.overrides = overrides.data();
    }
    COptions(const COptions&) = delete;
};

// A vector, an array: a run of elements that is no span of them.
template <class R>
concept Elements = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    !std::is_same_v<std::remove_cv_t<R>, std::span<std::ranges::range_value_t<R>>>;

template <class F>
int guarded(F&& f) noexcept {
    try {
        return f() ? 0 : 1;
    } catch (...) {
        return 1;
    }
}

}  // namespace detail

// One session; closes itself. Closing is collective: let all ranks end theirs at the same place.
class Session {
  public:
    static Result<Session> open(const Options& options) {
        cairn_session* session = nullptr;
        const detail::COptions c(options);
        const int code = cairn_open(&c.options, &session);
        if (code != CAIRN_OK) return Status(code, cairn_last_error(nullptr));
        return adopt(session);
    }
    // Takes over a session opened through the C interface.
    static Session adopt(cairn_session* session) { return Session(session); }

    Session(Session&& other) noexcept
        : session_(std::exchange(other.session_, nullptr)), callbacks_(std::move(other.callbacks_)) {}
    Session& operator=(Session&& other) noexcept {
        if (this != &other) {
            cairn_close(session_);
            session_ = std::exchange(other.session_, nullptr);
            callbacks_ = std::move(other.callbacks_);
        }
        return *this;
    }
    ~Session() { cairn_close(session_); }
    cairn_session* handle() const noexcept { return session_; }

    Status close() {
        const int code = cairn_close(std::exchange(session_, nullptr));
        return code == CAIRN_OK ? Status() : Status(code, cairn_last_error(nullptr));
    }

    // A run of elements; `shape` (row-major, its product the number of elements) when it has more than one dimension.
    template <class T>
    Status protect(const std::string& region, std::span<T> data, std::initializer_list<std::uint64_t> shape = {}) {
        static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>, "use protect_callbacks for this type");
        constexpr int type = type_of<T>();
        std::uint64_t count = 1;
        for (const std::uint64_t extent : shape) count *= extent;
        if (shape.size() != 0 && count != data.size())
            return Status(CAIRN_INVALID_ARGUMENT, "region \"" + region + "\": its shape has " + std::to_string(count) +
                                                      " elements, its memory " + std::to_string(data.size()));
        std::vector<std::uint64_t> extents(shape);
        if (extents.empty()) extents.push_back(data.size());
        if (type == CAIRN_BYTES) extents.back() *= sizeof(T);
        return tell(cairn_protect(session_, region.c_str(), data.data(), type,
                                  static_cast<std::uint32_t>(extents.size()), extents.data()));
    }
    // A vector, an array: its elements as they lie now. What grows or moves is to be unprotected first.
    template <detail::Elements R>
    Status protect(const std::string& region, R& data, std::initializer_list<std::uint64_t> shape = {}) {
        return protect(region, std::span(std::ranges::data(data), std::ranges::size(data)), shape);
    }
    // This rank's block of an array that all ranks have together: its shape, the array's, and where it begins there, in elements.
    template <class T>
    Status protect_block(const std::string& region, std::span<T> data, std::vector<std::uint64_t> shape, std::vector<std::uint64_t> global_shape,
                         std::vector<std::uint64_t> global_offset) {
        static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>, "a block is of plain elements");
        constexpr int type = type_of<T>();
        std::uint64_t count = 1;
        for (const std::uint64_t extent : shape) count *= extent;
        if (shape.empty() || count != data.size() || global_shape.size() != shape.size() || global_offset.size() != shape.size())
            return Status(CAIRN_INVALID_ARGUMENT, "region \"" + region + "\": a block's shape, its array's and its offset have as many dimensions, and the "
                                                      "shape as many elements as its memory, " + std::to_string(data.size()));
        if (type == CAIRN_BYTES)
            for (std::vector<std::uint64_t>* each : {&shape, &global_shape, &global_offset}) each->back() *= sizeof(T);
        return tell(cairn_protect_block(session_, region.c_str(), data.data(), type, static_cast<std::uint32_t>(shape.size()), shape.data(),
                                        global_shape.data(), global_offset.data()));
    }
    // One value: a step counter, the state of a generator.
    template <class T>
    requires std::is_trivially_copyable_v<T> Status protect_value(const std::string& region, T& value) {
        return protect(region, std::span<T>(&value, 1));
    }
    Status protect_callbacks(const std::string& region, Callbacks callbacks) {
        auto kept = std::make_unique<Callbacks>(std::move(callbacks));
        const int code = cairn_protect_callbacks(session_, region.c_str(), &size_of, &write_to, &read_from, kept.get());
        if (code == CAIRN_OK) callbacks_[region] = std::move(kept);
        return tell(code);
    }
    Status route_file(const std::string& region, const std::string& path) {
        return tell(cairn_route_file(session_, region.c_str(), path.c_str()));
    }
    // An array in a region that Cairn can not see into, as cairn_describe has it: describe("restart", 40, CAIRN_F64, {CAIRN_TO_END, 300}, "Grid/Density").
    Status describe(const std::string& region, std::uint64_t offset, int type, const std::vector<std::uint64_t>& shape, const std::string& name = {}) {
        return tell(cairn_describe(session_, region.c_str(), offset, type, static_cast<std::uint32_t>(shape.size()), shape.data(), name.c_str()));
    }
    Status unprotect(const std::string& region) {
        const int code = cairn_unprotect(session_, region.c_str());
        if (code == CAIRN_OK) callbacks_.erase(region);
        return tell(code);
    }

    Status checkpoint(Version version) { return tell(cairn_checkpoint(session_, version)); }
    Status wait(Version version, Level level, std::chrono::milliseconds timeout) {
        const auto ms = timeout.count() > 0 ? static_cast<std::uint64_t>(timeout.count()) : 0;
        return tell(cairn_wait(session_, version, static_cast<int>(level), ms));
    }
    Status test(Version version, Level level) { return tell(cairn_test(session_, version, static_cast<int>(level))); }
    Status cancel(Version version) { return tell(cairn_cancel(session_, version)); }

    Result<Version> newest_version() {
        Version version = 0;
        const int code = cairn_newest(session_, &version);
        return have(code, version);
    }
    Result<Version> newest_not_above(Version limit) {
        Version version = 0;
        const int code = cairn_newest_not_above(session_, limit, &version);
        return have(code, version);
    }
    Result<std::vector<cairn_version_info>> list() {
        std::vector<cairn_version_info> all(64);
        for (;;) {
            std::size_t count = 0;
            const int code = cairn_list(session_, all.data(), all.size(), &count);
            const bool fits = count <= all.size();
            if (code != CAIRN_OK || fits) {
                all.resize(fits ? count : all.size());
                return have(code, std::move(all));
            }
            all.resize(count);  // every rank sees the same count, so every rank asks again
        }
    }
    Result<std::uint64_t> region_bytes(Version version, const std::string& region) {
        std::uint64_t bytes = 0;
        const int code = cairn_region_bytes(session_, version, region.c_str(), &bytes);
        return have(code, bytes);
    }
    Result<std::vector<cairn_region_info>> regions(Version version) {
        std::size_t count = 0;
        int code = cairn_regions(session_, version, nullptr, 0, &count);
        std::vector<cairn_region_info> all(count);
        if (code == CAIRN_OK) code = cairn_regions(session_, version, all.data(), all.size(), &count);
        return have(code, std::move(all));
    }

    // The version that was restored; not_found when there is none.
    Result<Version> restore(Version version = newest) {
        Version restored = 0;
        const int code = cairn_restore(session_, version, &restored);
        return have(code, restored);
    }
    Result<Version> restore_regions(Version version, const std::vector<std::string>& regions) {
        std::vector<const char*> names;
        for (const std::string& region : regions) names.push_back(region.c_str());
        Version restored = 0;
        const int code = cairn_restore_regions(session_, version, names.data(), names.size(), &restored);
        return have(code, restored);
    }
    std::string warnings() const { return cairn_warnings(session_); }

  private:
    explicit Session(cairn_session* session) : session_(session) {}

    Status tell(int code) const { return code == CAIRN_OK ? Status() : Status(code, cairn_last_error(session_)); }
    // `code` is a variable of the caller: a call among these arguments could be made after `value` was copied.
    template <class T>
    Result<T> have(int code, T value) const {
        if (code != CAIRN_OK) return tell(code);
        return Result<T>(std::move(value));
    }
    static int size_of(void* context, std::uint64_t* bytes) {
        return detail::guarded([&] {
            *bytes = static_cast<Callbacks*>(context)->size();
            return true;
        });
    }
    static int write_to(void* context, void* into, std::uint64_t bytes) {
        return detail::guarded([&] {
            return static_cast<Callbacks*>(context)->write({static_cast<std::byte*>(into), bytes});
        });
    }
    static int read_from(void* context, const void* from, std::uint64_t bytes) {
        return detail::guarded([&] {
            return static_cast<Callbacks*>(context)->read({static_cast<const std::byte*>(from), bytes});
        });
    }

    cairn_session* session_ = nullptr;
    std::map<std::string, std::unique_ptr<Callbacks>> callbacks_;  // addresses stay put when the session moves
};

}  // namespace v1
}  // namespace cairn

#endif
