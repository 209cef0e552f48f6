// cairn_open_mpi: the exchange over a duplicate of the caller's communicator. Non-blocking collectives, so that a rank
// that never calls is a deadline and not a hang. A collective that was given up can not be withdrawn: its buffers and
// the communicator are left to MPI.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "cairn/cairn_mpi.h"

namespace {

struct Communicator {
    MPI_Comm parent = MPI_COMM_NULL,
             comm = MPI_COMM_NULL;  // the caller's, and its duplicate from the first exchange on
    int ranks = 1;
    bool given_up = false;
    bool left_to_mpi = false;  // a duplication that was given up may still write here
};

constexpr std::uint64_t piece_bytes_max = 1u << 20;  // of one rank in one MPI call: counts are ints

// 0 when done, 1 when not in time, 2 when MPI failed.
int finish(MPI_Request* request, std::uint64_t timeout_ms) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms < (1ull << 40) ? timeout_ms : 1ull << 40);
    std::chrono::microseconds pause(0);
    for (;;) {
        int done = 0;
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return 2;
        if (done) return 0;
        if (Clock::now() >= end) return 1;
        std::this_thread::sleep_for(pause);
        if (pause < std::chrono::milliseconds(5)) pause = pause * 2 + std::chrono::microseconds(10);
    }
}

// The duplicate is made in the first exchange, which has a deadline; MPI_Comm_dup would wait for a rank that never
// calls.
int duplicate(Communicator& c, std::uint64_t timeout_ms) {
    if (c.comm != MPI_COMM_NULL) return 0;
    MPI_Request request;
    int failed = MPI_Comm_idup(c.parent, &c.comm, &request) == MPI_SUCCESS ? 0 : 2;
    if (failed == 0) {
        failed = finish(&request, timeout_ms);
        c.left_to_mpi = failed != 0;
    }
    if (failed == 0 && MPI_Comm_set_errhandler(c.comm, MPI_ERRORS_RETURN) != MPI_SUCCESS) failed = 2;
    c.given_up = failed != 0;
    return failed;
}

// Buffers of a collective outlive one that is given up: malloc, not the caller's memory.
int allgather(void* context, const void* send, void* receive, std::uint64_t bytes, std::uint64_t timeout_ms) {
    auto& c = *static_cast<Communicator*>(context);
    if (c.given_up) return 1;
    if (const int failed = duplicate(c, timeout_ms); failed != 0) return failed;
    const auto ranks = static_cast<std::uint64_t>(c.ranks);
    for (std::uint64_t at = 0; at < bytes;) {
        const std::uint64_t now = bytes - at < piece_bytes_max ? bytes - at : piece_bytes_max;
        char* mine = static_cast<char*>(std::malloc(now * (ranks + 1)));
        if (!mine) return 3;
        char* all = mine + now;
        std::memcpy(mine, static_cast<const char*>(send) + at, now);
        MPI_Request request;
        if (MPI_Iallgather(mine, static_cast<int>(now), MPI_BYTE, all, static_cast<int>(now), MPI_BYTE, c.comm,
                           &request) != MPI_SUCCESS) {
            c.given_up = true;
            return 2;
        }
        if (const int failed = finish(&request, timeout_ms); failed != 0) {
            c.given_up = true;  // and `mine` stays MPI's
            return failed;
        }
        for (std::uint64_t rank = 0; rank < ranks; ++rank)
            std::memcpy(static_cast<char*>(receive) + rank * bytes + at, all + rank * now, now);
        std::free(mine);
        at += now;
    }
    return 0;
}

int broadcast(void* context, void* buffer, std::uint64_t bytes, std::uint64_t timeout_ms) {
    auto& c = *static_cast<Communicator*>(context);
    if (c.given_up) return 1;
    if (const int failed = duplicate(c, timeout_ms); failed != 0) return failed;
    for (std::uint64_t at = 0; at < bytes;) {
        const std::uint64_t now = bytes - at < piece_bytes_max ? bytes - at : piece_bytes_max;
        char* piece = static_cast<char*>(std::malloc(now));
        if (!piece) return 3;
        std::memcpy(piece, static_cast<const char*>(buffer) + at, now);
        MPI_Request request;
        if (MPI_Ibcast(piece, static_cast<int>(now), MPI_BYTE, 0, c.comm, &request) != MPI_SUCCESS) {
            c.given_up = true;
            return 2;
        }
        if (const int failed = finish(&request, timeout_ms); failed != 0) {
            c.given_up = true;
            return failed;
        }
        std::memcpy(static_cast<char*>(buffer) + at, piece, now);
        std::free(piece);
        at += now;
    }
    return 0;
}

void release(void* context) {
    auto* c = static_cast<Communicator*>(context);
    if (c->left_to_mpi) return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!c->given_up && !finalized && c->comm != MPI_COMM_NULL) MPI_Comm_free(&c->comm);
    delete c;
}

}  // namespace

extern "C" int cairn_open_mpi(MPI_Comm comm, const cairn_options* options, cairn_session** session) {
    int initialised = 0, finalized = 0;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalized);
    if (!initialised || finalized || comm == MPI_COMM_NULL) return cairn_open_exchange(nullptr, nullptr, session);
    auto* c = new Communicator;
    c->parent = comm;
    int rank = 0;
    if (MPI_Comm_rank(comm, &rank) != MPI_SUCCESS || MPI_Comm_size(comm, &c->ranks) != MPI_SUCCESS) {
        c->given_up = true;
        release(c);
        return cairn_open_exchange(nullptr, nullptr, session);
    }
    // A rank without options takes part too, and is named to all.
    cairn_options mine = CAIRN_OPTIONS;
    if (options && options->struct_bytes == sizeof mine) mine = *options;
    mine.rank = static_cast<std::uint32_t>(rank);
    mine.ranks = static_cast<std::uint32_t>(c->ranks);
    cairn_exchange exchange = {sizeof exchange, c, &allgather, &broadcast, &release};
    return cairn_open_exchange(&mine, &exchange, session);
}
