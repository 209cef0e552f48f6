// The Placer of the real world: hands what is asked to the file system whose name it has, and says once in the log what is lost where that does not go. One whose call did not end in
// time is left alone for a minute: files are made without it meanwhile.
#pragma once

#include <memory>

#include "storage/outside.hpp"
#include "world/placing.hpp"

namespace cairn {

std::shared_ptr<Placer> make_placer(Outside& outside = this_machine());

}  // namespace cairn
