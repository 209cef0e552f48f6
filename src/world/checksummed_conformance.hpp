// What read_checksummed() of every Storage must do (storage.hpp). See conformance.hpp.
#pragma once

#include <algorithm>

#include "base/checksum.hpp"
#include "world/conformance.hpp"

namespace cairn::conformance {

template <class Bench>
class ChecksummedConformance : public ::testing::Test {
  protected:
    using Body = Task<void> (*)(Bench&);
    void run(Body body) { EXPECT_TRUE(bench_.run(body(bench_))) << "the test did not end within the bench's limit"; }
    Bench bench_;
};
TYPED_TEST_SUITE_P(ChecksummedConformance);

inline constexpr std::uint64_t checksummed_file_bytes = 60'000;

template <class Bench>
Task<FilePtr> checksummed_file(Bench& bench, std::string root) {
    const std::string path = root + "/f";
    const bool put = co_await put_file(bench.storage(), path, pattern(checksummed_file_bytes));
    EXPECT_TRUE(put);
    OpenOptions options;
    Result<FilePtr> file = co_await bench.storage().open(path, options, never);
    EXPECT_TRUE(file.ok());
    co_return *file;
}

// Blocks and cuts from a place that is neither; some bytes go to two places, others nowhere.
template <class Bench>
Task<void> checksummed_units_and_destinations(Bench& bench) {
    const std::string places[] = {bench.scratch(), bench.persistent()};
    for (const std::string& root : places) {
        const FilePtr file = co_await checksummed_file(bench, root);
        const Bytes all = pattern(checksummed_file_bytes);
        const std::uint64_t from = 1'003, length = 50'000;
        std::vector<std::uint64_t> cuts(1, 17'000);
        const Units units(16'384, 8'192, std::move(cuts));
        const std::vector<std::uint64_t> ends = unit_ends(units, length);
        const Slice first = Slice::of(Bytes(9'000, std::byte{0xee})), second = Slice::of(Bytes(30'007, std::byte{0xee}));
        std::vector<Destination> into;
        into.push_back(Destination{77, first.part(500, 8'000)});
        into.push_back(Destination{20'000 - 7, second.part(7, 30'000)});
        const Result<std::vector<std::uint64_t>> sums = co_await bench.storage().read_checksummed(file, from, length, units, std::move(into), never);
        CO_ASSERT_OK(sums);
        CO_ASSERT(sums->size() == ends.size());
        for (std::size_t i = 0; i < ends.size(); ++i) {
            const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
            EXPECT_EQ((*sums)[i], checksum(ByteView(all).subspan(from + begin, ends[i] - begin))) << i;
        }
        Bytes expected(9'000, std::byte{0xee});
        std::copy_n(all.begin() + from + 77, 8'000, expected.begin() + 500);
        EXPECT_TRUE(std::ranges::equal(first.bytes(), expected));
        expected.assign(30'007, std::byte{0xee});
        std::copy_n(all.begin() + from + 20'000 - 7, 30'000, expected.begin() + 7);
        EXPECT_TRUE(std::ranges::equal(second.bytes(), expected));
    }
}

template <class Bench>
Task<void> checksummed_without_end(Bench& bench) {
    const FilePtr file = co_await checksummed_file(bench, bench.persistent());
    std::vector<Destination> nowhere;
    const Result<std::vector<std::uint64_t>> beyond = co_await bench.storage().read_checksummed(file, 50'000, 10'001, 4'096, nowhere, never);
    EXPECT_EQ(beyond.code(), Code::corrupt) << "a file that ends early";
    const Result<std::vector<std::uint64_t>> nothing = co_await bench.storage().read_checksummed(file, 0, 0, 4'096, nowhere, never);
    CO_ASSERT_OK(nothing);
    EXPECT_TRUE(nothing->empty());
    const Result<std::vector<std::uint64_t>> all = co_await bench.storage().read_checksummed(file, 0, checksummed_file_bytes, 4'096, nowhere, never);
    CO_ASSERT_OK(all);
    EXPECT_EQ(all->size(), 15u);
    const Result<std::vector<std::uint64_t>> late = co_await bench.storage().read_checksummed(file, 0, 4'096, 4'096, nowhere, bench.clock().now() - 1);
    EXPECT_TRUE(late.ok() || late.code() == Code::deadline);
}

TYPED_TEST_P(ChecksummedConformance, UnitsAndDestinations) { this->run(checksummed_units_and_destinations<TypeParam>); }
TYPED_TEST_P(ChecksummedConformance, AFileThatEndsEarly) { this->run(checksummed_without_end<TypeParam>); }
REGISTER_TYPED_TEST_SUITE_P(ChecksummedConformance, UnitsAndDestinations, AFileThatEndsEarly);

}  // namespace cairn::conformance
