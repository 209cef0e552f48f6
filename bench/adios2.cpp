// ADIOS2's BP5 as a peer in the race.
#include "peers.hpp"

#ifdef CAIRN_BENCH_ADIOS2
#include <adios2.h>
#endif

namespace bench {

#ifdef CAIRN_BENCH_ADIOS2
namespace {

void write_adios2(const Team& team, const WarmMemory& image, const std::string& path, const adios2::Params& parameters) {
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

// What nothing is said of is as its manual advises for large steps: https://adios2.readthedocs.io, engine BP5.
adios2::Params tuned(const Team& team, const WarmMemory& image, const Options& command) {
    constexpr std::uint64_t chunk_bytes_max = 2147381248;
    const auto largest = static_cast<std::uint64_t>(team.most(static_cast<double>(image.bytes())));
    const std::uint64_t files = command.number("files", 1), chunk = command.number("chunk", 0);
    const std::uint64_t writers = command.number("writers", std::max(files, static_cast<std::uint64_t>(team.hosts())));
    return {{"AggregationType", command.text("aggregation", "TwoLevelShm")},
            {"NumAggregators", std::to_string(writers)},
            {"NumSubFiles", std::to_string(files)},
            {"BufferChunkSize", std::to_string(std::min(chunk_bytes_max, chunk != 0 ? chunk : largest + (1u << 20)))},
            {"MaxShmSize", std::to_string(2 * largest + (1u << 20))},
            {"StripeSize", std::to_string(1u << 20)},
            {"StatsLevel", "0"}};
}

}  // namespace

std::string adios2_version() { return ADIOS2_VERSION_STR; }

std::vector<Peer> adios2_peers() {
    return {{"adios2", [](const Team& team, const WarmMemory& image, const std::string& path, const Options&) { write_adios2(team, image, path, {}); }},
            {"adios2_tuned", [](const Team& team, const WarmMemory& image, const std::string& path, const Options& command) {
                 write_adios2(team, image, path, tuned(team, image, command));
             }}};
}
#else
std::vector<Peer> adios2_peers() { return {}; }
std::string adios2_version() { return ""; }
#endif

}  // namespace bench
