// ADIOS2's BP5 as a peer in the race.
#include "peers.hpp"

#ifdef CAIRN_BENCH_ADIOS2
#include <adios2.h>
#endif

namespace bench {

#ifdef CAIRN_BENCH_ADIOS2
namespace {

void write(const Team& team, const WarmMemory& image, const std::string& path, const adios2::Params& parameters) {
    adios2::ADIOS adios(team.comm());
    adios2::IO io = adios.DeclareIO("race");
    io.SetEngine("BP5");
    io.SetParameters(parameters);
    const std::size_t words = image.bytes() / 8, before = team.sum_before(words), total = team.sum(words);
    auto variable = io.DefineVariable<std::uint64_t>("image", {total}, {before}, {words}, adios2::ConstantDims);
    adios2::Engine engine = io.Open(path, adios2::Mode::Write);
    engine.BeginStep();
    engine.Put(variable, reinterpret_cast<const std::uint64_t*>(image.data()), adios2::Mode::Deferred);
    engine.EndStep();
    engine.Close();
}

// As its manual advises for large steps: https://adios2.readthedocs.io, engine BP5.
adios2::Params tuned(const Team& team, const WarmMemory& image, int files) {
    constexpr std::uint64_t chunk_bytes_max = 2147381248;
    const auto largest = static_cast<std::uint64_t>(team.most(static_cast<double>(image.bytes())));
    return {{"AggregationType", "TwoLevelShm"},
            {"NumAggregators", std::to_string(std::max(files, team.hosts()))},
            {"NumSubFiles", std::to_string(files)},
            {"BufferChunkSize", std::to_string(std::min(chunk_bytes_max, largest + (1u << 20)))},
            {"MaxShmSize", std::to_string(2 * largest + (1u << 20))},
            {"StripeSize", std::to_string(1u << 20)},
            {"StatsLevel", "0"}};
}

}  // namespace

std::vector<Peer> adios2_peers() {
    return {{"adios2", [](const Team& team, const WarmMemory& image, const std::string& path, int) { write(team, image, path, {}); }},
            {"adios2_tuned", [](const Team& team, const WarmMemory& image, const std::string& path, int files) {
                 write(team, image, path, tuned(team, image, files));
             }}};
}
#else
std::vector<Peer> adios2_peers() { return {}; }
#endif

}  // namespace bench
