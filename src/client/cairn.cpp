// The C interface: checks what C can not, takes the lock, calls the session, keeps the text. Exceptions stop here.
#include "cairn/cairn.h"

#include <algorithm>
#include <cstring>

#include "client/guarded.hpp"
#include "client/handles.hpp"
#include "format/limits.hpp"

#ifndef CAIRN_VERSION
#define CAIRN_VERSION "unknown"
#endif

static_assert(static_cast<int>(cairn::Code::internal) == CAIRN_INTERNAL &&
              static_cast<int>(cairn::Code::superseded) == CAIRN_SUPERSEDED);
static_assert(static_cast<int>(cairn::DataType::c128) == CAIRN_C128 &&
              static_cast<int>(cairn::DataType::bf16) == CAIRN_BF16);
static_assert(CAIRN_TO_END == cairn::open_axis && CAIRN_BIG_ENDIAN > static_cast<int>(cairn::data_type_last));
static_assert(CAIRN_DESCRIPTIONS_MAX == cairn::described_arrays_max);
static_assert(CAIRN_REGION_BYTES_MAX == cairn::region_name_bytes_max &&
              CAIRN_DIMENSIONS_MAX == cairn::shape_dimensions_max && CAIRN_NAME_BYTES_MAX == cairn::name_bytes_max);

namespace {

using cairn::guarded;
using cairn::invalid_argument;
using cairn::Result;
using cairn::Session;
using cairn::Status;

// Per thread, not per process: errors of calls without a session, and texts handed out as C strings.
thread_local std::string error_without_session;
thread_local std::string error_of_open;
thread_local std::string error_handed_out, warnings_handed_out;

int tell(Session* session, const Status& status) {
    if (!status.ok()) {
        if (session)
            session->set_last_error(status);
        else
            error_without_session = status.to_string();
    }
    return static_cast<int>(status.code());
}

// Kept apart: whoever goes on without looking at it is told again by the next call.
int tell_open(const Status& status) {
    error_of_open = status.ok() ? std::string() : status.to_string();
    return tell(nullptr, status);
}

Status no_session() {
    return invalid_argument("the session is NULL" + (error_of_open.empty()
                                                         ? std::string(": did cairn_open fail?")
                                                         : "; the last open on this thread failed: " + error_of_open));
}
Status not_open() { return invalid_argument("this session was closed already, or was never opened"); }
Status in_callback() {
    return invalid_argument("a callback called Cairn with the session that is calling it: let it return first");
}

// One call on a session: one after the other, or beside any other.
enum class Order { one_by_one, beside };
template <class F>
int enter(cairn_session* handle, Order order, F&& call) {
    if (!handle) return tell(nullptr, no_session());
    const std::shared_ptr<Session> session = cairn::handles::find(handle);
    if (!session) return tell(nullptr, not_open());
    if (!session->in_this_process())
        return tell(nullptr, invalid_argument("this session belongs to process " + std::to_string(session->process()) +
                                              ", from which this one was forked: open one of its own"));
    if (session->main.is_mine()) return tell(session.get(), in_callback());
    std::unique_lock guard(session->main, std::defer_lock);
    if (order == Order::one_by_one) guard.lock();
    return tell(session.get(), guarded([&] { return call(*session); }));
}

int open_with(const cairn_options* options, std::unique_ptr<cairn::Exchange> exchange, cairn_session** handle) {
    if (!handle) return tell_open(invalid_argument("cairn_open: the place for the session is NULL"));
    *handle = nullptr;
    return tell_open(guarded([&]() -> Status {
        TRY_ASSIGN(std::shared_ptr<Session> session, Session::open(options, std::move(exchange)));
        *handle = cairn::handles::add(std::move(session));
        return {};
    }));
}

}  // namespace

extern "C" {

int cairn_open(const cairn_options* options, cairn_session** session) { return open_with(options, nullptr, session); }

int cairn_open_exchange(const cairn_options* options, const cairn_exchange* exchange, cairn_session** session) {
    // cairn_open_mpi comes here without an exchange when it can not make one.
    if (!exchange)
        return tell_open(invalid_argument(
            "no exchange between the ranks; with MPI, MPI_Init comes first and MPI_Finalize after cairn_close"));
    if (exchange->struct_bytes != sizeof(cairn_exchange) || !exchange->allgather || !exchange->broadcast || !options ||
        options->struct_bytes != sizeof(cairn_options)) {
        if (exchange->struct_bytes == sizeof(cairn_exchange) && exchange->release) exchange->release(exchange->context);
        return tell_open(
            invalid_argument("cairn_open_exchange: options, or one of both functions, are missing or of unknown size"));
    }
    const std::uint32_t ranks = options->ranks == 0 ? 1 : options->ranks;
    std::unique_ptr<cairn::Exchange> way;
    const Status made = guarded([&]() -> Status {
        way = std::make_unique<cairn::CallerExchange>(options->rank, ranks, *exchange);
        if (ranks > cairn::ranks_max)
            return invalid_argument(std::to_string(ranks) + " ranks; at most " + std::to_string(cairn::ranks_max));
        return options->rank < ranks
                   ? Status()
                   : invalid_argument("rank " + std::to_string(options->rank) + " of " + std::to_string(ranks));
    });
    return made.ok() ? open_with(options, std::move(way), session) : tell_open(made);
}

int cairn_close(cairn_session* handle) {
    if (!handle) return CAIRN_OK;
    if (const auto session = cairn::handles::find(handle); session && session->main.is_mine())
        return tell(session.get(), in_callback());
    std::shared_ptr<Session> session = cairn::handles::close(handle);
    if (!session) return tell(nullptr, not_open());
    Status status;
    if (session->in_this_process()) {
        const std::lock_guard guard(session->main);
        status = guarded([&] { return session->close(); });
    } else {  // in a forked child: free, and touch nothing that the parent goes on using
        session->let_go();
    }
    static_cast<void>(guarded([&]() -> Status {
        session.reset();
        return {};
    }));
    return tell(nullptr, status);
}

int cairn_protect(cairn_session* handle, const char* region, void* data, int type, uint32_t ndim,
                  const uint64_t* shape) {
    return enter(handle, Order::one_by_one,
                 [&](Session& session) {
                     return session.protect([&](cairn::RegionTable& regions) { return regions.add_memory(region, data, type, ndim, shape); });
                 });
}

int cairn_protect_block(cairn_session* handle, const char* region, void* data, int type, uint32_t ndim, const uint64_t* shape,
                        const uint64_t* global_shape, const uint64_t* global_offset) {
    return enter(handle, Order::one_by_one,
                 [&](Session& session) {
                     return session.protect([&](cairn::RegionTable& regions) { return regions.add_block(region, data, type, ndim, shape, global_shape, global_offset); });
                 });
}

int cairn_protect_callbacks(cairn_session* handle, const char* region, cairn_size_function size,
                            cairn_serialise_function serialise, cairn_deserialise_function deserialise, void* context) {
    return enter(handle, Order::one_by_one, [&](Session& session) {
        return session.protect([&](cairn::RegionTable& regions) { return regions.add_callbacks(region, size, serialise, deserialise, context); });
    });
}

int cairn_route_file(cairn_session* handle, const char* region, const char* path) {
    return enter(handle, Order::one_by_one, [&](Session& session) { return session.protect([&](cairn::RegionTable& regions) { return regions.add_file(region, path); }); });
}

int cairn_describe(cairn_session* handle, const char* region, uint64_t offset, int type, uint32_t ndim, const uint64_t* shape, const char* name) {
    return enter(handle, Order::one_by_one, [&](Session& session) { return session.protect([&](cairn::RegionTable& regions) { return regions.describe(region, offset, type, ndim, shape, name); }); });
}

int cairn_unprotect(cairn_session* handle, const char* region) {
    return enter(handle, Order::one_by_one, [&](Session& session) { return session.protect([&](cairn::RegionTable& regions) { return regions.remove(region); }); });
}

int cairn_checkpoint(cairn_session* handle, uint64_t version) {
    return enter(handle, Order::one_by_one, [&](Session& session) { return session.checkpoint(version); });
}

int cairn_wait(cairn_session* handle, uint64_t version, int level, uint64_t timeout_ms) {
    return enter(handle, Order::beside, [&](Session& session) { return session.wait(version, level, timeout_ms); });
}

int cairn_test(cairn_session* handle, uint64_t version, int level) { return cairn_wait(handle, version, level, 0); }

int cairn_cancel(cairn_session* handle, uint64_t version) {
    return enter(handle, Order::beside, [&](Session& session) { return session.cancel(version); });
}

int cairn_newest(cairn_session* handle, uint64_t* version) {
    return cairn_newest_not_above(handle, CAIRN_NEWEST, version);
}

int cairn_newest_not_above(cairn_session* handle, uint64_t limit, uint64_t* version) {
    return enter(handle, Order::one_by_one, [&](Session& session) -> Status {
        // Collective: even a rank that has no place for the answer takes part.
        TRY_ASSIGN(const cairn::Version newest, session.newest_not_above(limit));
        if (!version) return invalid_argument("the place for the version is NULL");
        *version = newest;
        return {};
    });
}

int cairn_list(cairn_session* handle, cairn_version_info* array, size_t capacity, size_t* count) {
    return enter(handle, Order::one_by_one, [&](Session& session) -> Status {
        TRY_ASSIGN(const std::vector<cairn::KeptVersion> all, session.list());
        if (!count || (!array && capacity > 0)) return invalid_argument("the place for the list or its length is NULL");
        *count = all.size();
        const std::size_t given = std::min(capacity, all.size());
        for (std::size_t i = 0; i < given; ++i) {
            const cairn::KeptVersion& each = all[all.size() - given + i];
            array[i] = {each.key.version, each.bytes, each.ranks, each.committed ? CAIRN_COMMITTED : CAIRN_SEALED};
        }
        return {};
    });
}

int cairn_region_bytes(cairn_session* handle, uint64_t version, const char* region, uint64_t* bytes) {
    return enter(handle, Order::one_by_one, [&](Session& session) -> Status {
        if (!region || !bytes) return invalid_argument("the region's name or the place for its size is NULL");
        TRY_ASSIGN(const auto image, session.image_of(version));
        if (const cairn::Region* found = image->find(region)) {
            *bytes = found->length;
            return {};
        }
        return cairn::not_found("rank " + std::to_string(session.rank()) + " has no region \"" + region +
                                "\" in that version; cairn_regions gives those that it has");
    });
}

int cairn_regions(cairn_session* handle, uint64_t version, cairn_region_info* array, size_t capacity, size_t* count) {
    return enter(handle, Order::one_by_one, [&](Session& session) -> Status {
        if (!count || (!array && capacity > 0))
            return invalid_argument("the place for the regions or their number is NULL");
        TRY_ASSIGN(const auto image, session.image_of(version));
        const std::vector<cairn::Region>& regions = image->image().regions;
        *count = regions.size();
        for (std::size_t i = 0; i < std::min(capacity, regions.size()); ++i) {
            const cairn::Region& from = regions[i];
            cairn_region_info& to = array[i];
            std::memset(&to, 0, sizeof to);
            from.name.copy(to.name, CAIRN_REGION_BYTES_MAX);
            to.type = static_cast<int>(from.type);
            to.ndim = static_cast<uint32_t>(from.shape.size());
            std::copy(from.shape.begin(), from.shape.end(), to.shape);
            to.bytes = from.length;
        }
        return {};
    });
}

static int restore(cairn_session* handle, uint64_t version, const std::vector<std::string>* names, uint64_t* restored) {
    return enter(handle, Order::one_by_one, [&](Session& session) -> Status {
        TRY_ASSIGN(const cairn::Version done, session.restore(version, names));
        if (restored) *restored = done;
        return {};
    });
}

int cairn_restore(cairn_session* handle, uint64_t version, uint64_t* restored) {
    return restore(handle, version, nullptr, restored);
}

int cairn_restore_regions(cairn_session* handle, uint64_t version, const char* const* regions, size_t count,
                          uint64_t* restored) {
    std::vector<std::string> names;
    // A NULL name becomes the empty one, which nothing is protected under: the call fails on all ranks, not on this one
    // alone.
    const Status copied = guarded([&]() -> Status {
        for (std::size_t i = 0; regions && i < count; ++i) names.emplace_back(regions[i] ? regions[i] : "");
        if (!regions && count != 0) names.emplace_back();
        return {};
    });
    return copied.ok() ? restore(handle, version, &names, restored) : tell(cairn::handles::find(handle).get(), copied);
}

const char* cairn_last_error(const cairn_session* handle) {
    const Status status = guarded([&]() -> Status {
        const auto session = cairn::handles::find(handle);
        const bool ours = session && session->in_this_process();  // in a forked child its lock may be held for ever
        error_handed_out = ours ? session->last_error() : error_without_session;
        return {};
    });
    return status.ok() ? error_handed_out.c_str() : "not enough memory";
}

const char* cairn_warnings(const cairn_session* handle) {
    const Status status = guarded([&]() -> Status {
        const auto session = cairn::handles::find(handle);
        warnings_handed_out = session && session->in_this_process() ? session->warnings() : std::string();
        return {};
    });
    return status.ok() ? warnings_handed_out.c_str() : "";
}

const char* cairn_status_name(int status) {
    static const char* const names[] = {
        "ok",          "invalid_argument", "not_found",  "already_exists", "out_of_space", "io_error",    "corrupt",
        "unavailable", "deadline",         "superseded", "cancelled",      "permission",   "unsupported", "internal"};
    return status >= 0 && status <= CAIRN_INTERNAL ? names[status] : "unknown";
}

const char* cairn_library_version(void) { return CAIRN_VERSION; }

}  // extern "C"
