// World: the five interfaces the engine runs over. The real one is in world/real, the simulated one in world/sim.
#pragma once

#include "world/channel.hpp"
#include "world/clock.hpp"
#include "world/cpu.hpp"
#include "world/gate.hpp"
#include "world/network.hpp"
#include "world/storage.hpp"
#include "world/task.hpp"

namespace cairn {

struct World {
    Clock& clock;
    Storage& storage;
    Network& network;
    Randomness& random;
    Cpu& cpu;
};

}  // namespace cairn
