// The tcp provider's sockets, reached behind its back: the three things that it has no call for.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace cairn {

// Asks the kernel to find out whether the hosts at the other end still exist (about half a minute), so that a
// connection to one that lost power ends, and with it what was half received over it.
void probe_accepted_sockets(std::uint16_t port);
// Ends the connections; the provider sees their end as if the peer had died, which it survives at any moment.
// (libfabric 1.17 crashes when it is asked to close one over which it is just reading a payload.)
void end_accepted_sockets(std::uint16_t port);

// Where connections of this process lead ("192.0.2.7:40123") whose bytes the kernel has sent again and again since anything came back. A short message that vanishes
// so was sent, as far as the provider knows.
std::set<std::string> stalled_destinations();

}  // namespace cairn
