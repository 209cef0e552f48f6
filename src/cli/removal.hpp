// Removal moved to engine/, where the daemon's retention can use it, too.
#pragma once

#include "engine/removal.hpp"
