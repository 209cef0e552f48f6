// What the conformance suites share. A world proves itself by instantiating them over a Bench:
//
//   struct MyBench {                          // made anew for each test, destroyed after its tasks
//       bool run(Task<void> task);            // starts it, drives the loop until it is done; false after a limit of the bench's own
//       Clock& clock();
//       Storage& storage();                   // storage_conformance.hpp
//       std::string scratch(), persistent();  // existing, empty directories
//       Network& network(int endpoint);       // network_conformance.hpp: endpoints 0 and 1, on the loop of clock()
//       Address gone();                       // of an endpoint that is no more
//       Cpu& cpu();                           // cpu_conformance.hpp
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Mine, StorageConformance, MyBench);
//
// A bench needs only the members of the suites it instantiates, and stands outside the anonymous namespace.
#pragma once

#include <gtest/gtest.h>

#include "world/world.hpp"

namespace cairn::conformance {

// ASSERT_* return, which a coroutine can not.
#define CO_ASSERT(condition)                              \
    do {                                                  \
        if (!(condition)) {                               \
            ADD_FAILURE() << #condition " does not hold"; \
            co_return;                                    \
        }                                                 \
    } while (false)
#define CO_ASSERT_OK(result)                                                        \
    do {                                                                            \
        if (!(result).ok()) {                                                       \
            ADD_FAILURE() << #result ": " << ::cairn::conformance::text_of(result); \
            co_return;                                                              \
        }                                                                           \
    } while (false)

inline std::string text_of(const Status& status) { return status.to_string(); }
template <class T>
std::string text_of(const Result<T>& result) { return result.status().to_string(); }

// Bytes that differ from one seed to the next and have no period that a block size divides.
inline Bytes pattern(std::uint64_t length, unsigned seed = 1) {
    Bytes bytes(length);
    std::uint32_t state = seed * 2654435761u + 12345u;
    for (std::byte& byte : bytes) {
        state = state * 1664525u + 1013904223u;
        byte = static_cast<std::byte>(state >> 24);
    }
    return bytes;
}

// Reads a whole file, looping over short reads; empty after a failure, which it reports.
inline Task<Bytes> bytes_of(Storage& storage, std::string path) {
    Result<Bytes> bytes = co_await read_file(storage, path, 1ull << 30, never);
    if (!bytes.ok()) {
        ADD_FAILURE() << path << ": " << text_of(bytes);
        co_return Bytes();
    }
    co_return std::move(*bytes);
}

// Writes a new file; reports a failure.
inline Task<bool> put_file(Storage& storage, std::string path, Bytes bytes) {
    Status status = co_await write_file(storage, path, std::move(bytes), 0644, never);
    if (!status.ok()) ADD_FAILURE() << path << ": " << text_of(status);
    co_return status.ok();
}

inline Task<Code> open_code(Storage& storage, std::string path, OpenMode mode) {
    OpenOptions options;
    options.mode = mode;
    Result<FilePtr> file = co_await storage.open(path, options, never);
    co_return file.code();
}

}  // namespace cairn::conformance
