// Handles: what stands behind a cairn_session*. It is never used again after its session is closed, so that a call with
// a closed one is an error and no crash; and a session lives until the last call on it has returned.
#pragma once

#include <memory>

#include "cairn/cairn.h"
#include "client/session.hpp"

namespace cairn::handles {

cairn_session* add(std::shared_ptr<Session> session);
// Null for what was closed, or was never a handle.
std::shared_ptr<Session> find(const cairn_session* handle);
// The same, and the handle is closed now.
std::shared_ptr<Session> close(const cairn_session* handle);

}  // namespace cairn::handles
