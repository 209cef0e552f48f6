// What the body of a message must hold. Nobody's word is believed in what can not be: whoever acts on a message that was decoded need not look again.
#pragma once

#include "base/status.hpp"
#include "model/messages.hpp"

namespace cairn {

Status check_body(const message::Body& body);

}  // namespace cairn
