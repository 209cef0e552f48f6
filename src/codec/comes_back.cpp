#include "codec/comes_back.hpp"

#include <atomic>
#include <bit>
#include <cstring>

#include "base/log.hpp"

namespace cairn {

bool comes_back(const Status& decoded, ByteView back, ByteView raw) {
    if (decoded.ok() && std::memcmp(back.data(), raw.data(), raw.size()) == 0) return true;
    if (decoded.code() == Code::out_of_space) return false;  // no memory to look: nothing has erred
    static std::atomic<std::uint64_t> times = 0;
    const std::uint64_t now = ++times;
    if (std::has_single_bit(now))
        log_warning("codec-erred", {{"times", now}, {"bytes", raw.size()}, {"what", decoded.ok() ? "what was encoded made other bytes when decoded" : decoded.text()}, {"lost", "nothing: they are stored as they are"},
                                    {"do", "look after this node's scratch, memory and processor; where they are sound it is a defect in Cairn or in zstd, please report it"}});
    return false;
}

}  // namespace cairn
