// Addresses of the fabric: printable text <-> the provider's bytes, and which address of this host to bind to.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn {

// "tcp://192.0.2.7:40123", "tcp://[2001:db8::7]:40123" for socket addresses, "efa://<hex>" for anything else.
// `scheme` is the provider's first name; `format` is libfabric's fi_info::addr_format.
Result<std::string> print_fabric_address(std::string_view scheme, std::uint32_t format, ByteView raw);
// invalid_argument, naming the text, unless it is an address as printed above.
Result<Bytes> parse_fabric_address(std::string_view scheme, std::uint32_t format, std::string_view text);

// The numeric address to bind to: `wanted` may be an address of this host or the name of an interface. Empty: the first
// interface that is up and not loopback (IPv4 before IPv6), else 127.0.0.1. invalid_argument names the interfaces there
// are.
Result<std::string> choose_host_address(std::string_view wanted);

}  // namespace cairn
