#include "model/run_length.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::uint64_t kib = 1 << 10, mib = 1 << 20;

TEST(RunLength, WhatIsStoredAsItIsIsAsLongAsAWritersTurn) {
    EXPECT_EQ(next_chunk_bytes({mib, 16 * mib, 0, 0}, UINT64_MAX, 0, 0), 16 * mib);
    EXPECT_EQ(next_chunk_bytes({mib, 16 * mib, 0, 0}, 5 * mib + 1, 0, 0), 5 * mib) << "whole blocks";
    EXPECT_EQ(next_chunk_bytes({mib, 16 * mib, 0, 0}, 0, 0, 0), mib) << "one at least";
}

TEST(RunLength, WhatIsEncodedIsAtMost4MiBWhereThatIsStoredInEnough) {
    EXPECT_EQ(next_chunk_bytes({64 * kib, 16 * mib, 64 * mib, 0}, UINT64_MAX, 100, 50), 4 * mib);
    EXPECT_EQ(next_chunk_bytes({64 * kib, 64 * kib, 64 * mib, 0}, UINT64_MAX, 0, 0), mib) << "of what nothing is known";
    EXPECT_EQ(next_chunk_bytes({64 * kib, 64 * kib, 64 * mib, 0}, UINT64_MAX, 64, 2), 8 * mib) << "shortened 32 times, 256 KiB are stored";
    EXPECT_EQ(next_chunk_bytes({64 * kib, 64 * kib, 2 * mib, 0}, UINT64_MAX, 64, 2), 2 * mib) << "a buffer has no more";
    EXPECT_EQ(next_chunk_bytes({16 * mib, 64 * kib, 64 * mib, 0}, UINT64_MAX, 100, 50), 16 * mib) << "a block";
}

}  // namespace
}  // namespace cairn
