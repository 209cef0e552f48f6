#include "describe/hdf5_signature.hpp"

namespace cairn {

// HDF5 File Format Specification, II.A.
std::optional<std::uint64_t> hdf5_begins(ByteView file) {
    constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
    for (std::uint64_t at = 0; at + signature.size() <= file.size(); at = at == 0 ? 512 : at * 2)
        if (as_text(file.subspan(at, signature.size())) == signature) return at;
    return std::nullopt;
}

}  // namespace cairn
