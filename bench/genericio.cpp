// GenericIO as a peer in the race: non-collective writes, as the paper has it.
#include "peers.hpp"

#ifdef CAIRN_BENCH_GENERICIO
#include <GenericIO.h>
#endif

namespace bench {

#ifdef CAIRN_BENCH_GENERICIO
namespace {

void write_genericio(const Team& team, const WarmMemory& image, const std::string& path, const Options& command) {
    const auto files = static_cast<long>(command.number("files", 1));
    gio::GenericIO::setCollectiveMPIIOThreshold(0);  // else small images go another way
    gio::GenericIO io(team.comm(), path, gio::GenericIO::FileIOPOSIX);
    io.setPartition(static_cast<int>(team.rank() * files / team.ranks()));
    io.setNumElems(image.bytes() / 8);
    io.addVariable("image", reinterpret_cast<std::uint64_t*>(image.data()));
    io.write();
}

}  // namespace

std::vector<Peer> genericio_peers() { return {{"genericio", write_genericio}}; }
#else
std::vector<Peer> genericio_peers() { return {}; }
#endif

}  // namespace bench
