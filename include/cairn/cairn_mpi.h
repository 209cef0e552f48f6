/* Cairn for MPI programs: libcairn_mpi, the only part that knows MPI. See cairn.h for everything else. */
#ifndef CAIRN_CAIRN_MPI_H
#define CAIRN_CAIRN_MPI_H

#include <mpi.h>

#include "cairn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over `comm`: cairn_open for its ranks; options->rank, ->ranks and ->job are not used. MPI is used on a
 * duplicate of `comm`, in collective calls of the session only; cairn_close must come before MPI_Finalize. Every rank
 * of `comm` must call, with options or not: a rank whose arguments are bad fails the open for all. Errors as
 * cairn_open; INVALID_ARGUMENT when MPI is not initialised. */
CAIRN_API int cairn_open_mpi(MPI_Comm comm, const cairn_options* options, cairn_session** session);

#ifdef __cplusplus
}
#endif

/* Include cairn.hpp first to have it in C++ dress. */
#ifdef CAIRN_CAIRN_HPP
namespace cairn {
inline namespace v1 {
inline Result<Session> open_mpi(MPI_Comm comm, const Options& options) {
    cairn_session* session = nullptr;
    const detail::COptions c(options);
    const int code = cairn_open_mpi(comm, &c.options, &session);
    if (code != CAIRN_OK) return Status(code, cairn_last_error(nullptr));
    return Session::adopt(session);
}
}  // namespace v1
}  // namespace cairn
#endif

#endif
