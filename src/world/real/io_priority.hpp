// Numbers of ioprio_set(2), which no header of the C library has. Not from <linux/ioprio.h>: since Linux 6.1.192 it names an argument `class` in an
// inline function, which C++ does not read.
#pragma once

namespace cairn {

constexpr int io_priority_of_thread = 1;   // IOPRIO_WHO_PROCESS
constexpr int io_priority_idle = 3 << 13;  // IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0)

}  // namespace cairn
