// Files of every format, cut at each byte and with bytes changed at random.
#include <random>

#include "describe/golden_testing.hpp"

namespace cairn {
namespace {

TEST(DescribeHostile, AFileThatEndsAnywhere) {
    for (const char* name : testing::described_golden) {
        SCOPED_TRACE(name);
        const Bytes file = testing::golden_described(name);
        for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
            const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bytes));  // of its own, so that a look beyond its end is one into nothing
            testing::expect_within(cut);
            if (HasFatalFailure()) FAIL() << bytes << " bytes";
        }
    }
}

TEST(DescribeHostile, BytesThatAreOthers) {
    for (const char* name : testing::described_golden) {
        SCOPED_TRACE(name);
        const Bytes whole = testing::golden_described(name);
        std::mt19937_64 random(1);
        for (int round = 0; round < 5'000; ++round) {
            Bytes file = whole;
            for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
                // Those that mean most are few: any number, one that is off by one bit, none, all.
                const std::byte values[] = {std::byte(random()), file[random() % file.size()] ^ std::byte(1u << random() % 8), std::byte(0), std::byte(0xFF)};
                file[random() % file.size()] = values[random() % 4];
            }
            testing::expect_within(file);
            if (HasFatalFailure()) FAIL() << "round " << round;
        }
    }
}

}  // namespace
}  // namespace cairn
