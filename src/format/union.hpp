// The body of a union, read by one table: the schema's tables in the order of the union, which is that of the model's variant.
#pragma once

namespace cairn {

template <class... Tables>
struct Bodies {};

// Applies `read` to the body whose type it is. False: it is of none of these tables.
template <template <class> class Traits, class... Tables, class Type, class Read>
bool read_body(Bodies<Tables...>, Type type, const void* body, Read read) {
    return ((Traits<Tables>::enum_value == type ? (read(*static_cast<const Tables*>(body)), true) : false) || ...);
}

}  // namespace cairn
