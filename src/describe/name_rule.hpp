// Of which names of arrays two are alike. What makes keys of names by it is similarity.hpp.
#pragma once

#include <cstdint>

namespace cairn {

// Which runs of digits of a name count as one sign; the setting describe.names, in its order.
enum class NameRule : std::uint8_t {
    groups,  // those in the groups above a variable: x1 and x2 are two variables
    all,     // those of the variable, too: out_0010/x1 and out_0020/x2 are one
    exact,   // none: the same name only
};

}  // namespace cairn
