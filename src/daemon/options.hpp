// Options: what a daemon needs to know, from the settings, the environment and the command line.
#pragma once

#include <memory>
#include <string>

#include "base/config.hpp"
#include "daemon/persistent_retention.hpp"
#include "daemon/slots.hpp"
#include "daemon/stepping.hpp"
#include "daemon/yielding.hpp"
#include "describer/rules_file.hpp"
#include "catalog/layout.hpp"
#include "engine/router/node.hpp"
#include "world/real/fabric.hpp"
#include "world/real/world.hpp"

namespace cairn {

struct Life;

struct DaemonOptions {
    std::string node;
    std::string scratch_directory;  // where the daemon's own directory lies
    ScratchLayout scratch;
    Layout persistent;
    FlushSettings flush;
    SlotSettings slots;
    RetentionRule persistent_rule;
    bool free_at_end = true;  // retention.free_at_end
    Settings::TargetsDriver targets_driver = Settings::TargetsDriver::automatic;
    std::vector<std::string> targets;  // placement.targets
    FabricSettings fabric;
    RealWorldOptions world;
    YieldSettings yielding;
    SteppingSettings stepping;
    Life* life = nullptr;      // what its keeper sees, where it has one
    bool io_node = false;  // dedicated: offers itself to jobs without ranks here, and does not end for want of work
    Nanos idle = 60 * second;
    Nanos stop_wait = 30 * second;
    std::uint64_t start_wait_ms = 10'000;
    std::string log_file;  // empty: stderr
    LogLevel log_level = LogLevel::info;
    std::string trace_file;  // empty: none
    std::shared_ptr<const FileRules> file_rules;  // null: none
    NameRule names = NameRule::groups;
};

// `node`, `scratch`, `persistent`: from the command line, empty where not given.
struct DaemonPlace {
    std::string node, scratch, persistent;
    bool io_node = false;
};
Result<DaemonOptions> daemon_options(const Settings& settings, const DaemonPlace& place);
// Makes the ring of buffers, with what codecs work in, fit flush.buffers x flush.buffer_bytes and the node's memory, with an event when it had to be smaller, and keeps slots in a tmpfs
// from taking all of the memory that a control group leaves us: an error in time instead of the kernel's killer. Once
// scratch and the log are open.
void fit_memory(DaemonOptions& options, const Settings& settings);

// $CAIRN_NODE, else the host's name up to its first dot.
std::string default_node_name();

}  // namespace cairn
