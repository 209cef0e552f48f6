// Memory for as much as a file says it holds, which may be more than there is: such a file may be sparse.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "base/status.hpp"

namespace cairn {

template <class Values>
Result<Values> room_for(std::uint64_t count) {
    try {
        return Values(count);
    } catch (const std::exception&) {  // bad_alloc, or longer than a vector can be
        return Status(Code::out_of_space, "no memory for " + std::to_string(count * sizeof(typename Values::value_type)) + " bytes that it says it has");
    }
}

}  // namespace cairn
