// cairn_seeds: runs seeded clusters with faults and holds the promise against each.
//   cairn_seeds [--from N] [--count N] [--seed N] [--trace]
// A seed that fails is told with the one command that runs it again. Exit status 1 when any failed.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/seeds_sim.hpp"

int main(int argc, char** argv) {
    std::uint64_t from = 1, count = 100;
    bool trace = false, single = false;
    for (int i = 1; i < argc; ++i) {
        const bool has_value = i + 1 < argc;
        if (!std::strcmp(argv[i], "--trace")) trace = true;
        else if (!std::strcmp(argv[i], "--from") && has_value) from = std::strtoull(argv[++i], nullptr, 10);
        else if (!std::strcmp(argv[i], "--count") && has_value) count = std::strtoull(argv[++i], nullptr, 10);
        else if (!std::strcmp(argv[i], "--seed") && has_value) { from = std::strtoull(argv[++i], nullptr, 10); count = 1; single = true; }
        else { std::fprintf(stderr, "usage: %s [--from N] [--count N] [--seed N] [--trace]\n", argv[0]); return 2; }
    }
    std::uint64_t failed = 0, committed = 0, faults = 0, moved = 0;
    for (std::uint64_t seed = from; seed < from + count; ++seed) {
        const cairn::testing::SeedResult result = cairn::testing::run_seed(seed, trace);
        committed += result.committed;
        faults += result.faults;
        moved += result.taken_over_bytes > 0;
        if (single) std::printf("%s", result.story.c_str());
        if (result.ok) continue;
        ++failed;
        std::printf("seed %llu: %s\n  again: %s --seed %llu\n", static_cast<unsigned long long>(seed), result.failure.c_str(), argv[0],
                    static_cast<unsigned long long>(seed));
        std::fflush(stdout);
    }
    std::printf("%llu seeds, %llu failed; %llu versions committed, %llu faults, work changed hands in %llu\n", static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(failed), static_cast<unsigned long long>(committed), static_cast<unsigned long long>(faults),
                static_cast<unsigned long long>(moved));
    return failed ? 1 : 0;
}
