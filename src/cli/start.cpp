// `cairn start`: a node's daemon by hand or from a job script.
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "base/text_table.hpp"
#include "cli/daemons.hpp"
#include "client/daemon_link.hpp"
#include "format/names.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

// One that runs ranks' sessions, or was started by them, does not become an I/O node.
Status check_io_node(DaemonLink& link, std::uint64_t wait_ms) {
    TRY_ASSIGN(const control::NodeStatus status,
               link.ask_for<control::NodeStatus>(control::GetStatus{}, Deadline::in_ms(wait_ms)));
    if (status.io_node) return {};
    return {Code::already_exists, "the daemon of node " + status.node + " (process " + std::to_string(status.pid) +
                                      ") runs already, and is not an I/O node: `cairn stop` first, or take another node"};
}

Status run_start(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(const Config config, load_settings(arguments));
    const Settings& settings = config.settings;
    DaemonHome home{settings.paths.scratch,
                    settings.paths.persistent,
                    arguments.given("node") ? arguments.text("node") : this_node(),
                    settings.daemon.program,
                    {},
                    arguments.given("io-node")};
    TRY(check_name(home.node).within("the node's name (--node, CAIRN_NODE, or the host's name)"));
    if (!config.file.empty()) home.environment.push_back("CAIRN_CONFIG=" + config.file);
    const ScratchLayout scratch = ScratchLayout::of(home.scratch, ::geteuid(), home.node, home.persistent);
    const std::uint64_t wait_ms = settings.daemon.start_wait_ms;
    const Result<std::optional<Reached>> before = reach(scratch, wait_ms);
    if (!before.ok()) return silent_status({{scratch, before.status()}});
    const bool ran_before = before->has_value();
    DaemonLink link(home, false, wait_ms);
    TRY(link.ensure(Deadline::in_ms(wait_ms)));
    if (home.io_node) TRY(check_io_node(link, wait_ms));
    const control::Welcome& welcome = link.welcome();
    if (console.json) {
        const Json document = {{"node", welcome.node},
                               {"pid", welcome.pid},
                               {"address", welcome.address},
                               {"started", !ran_before},
                               {"io_node", home.io_node},
                               {"scratch", scratch.root}};
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return {};
    }
    console.out << "cairnd of " << (home.io_node ? "I/O node " : "node ") << for_terminal(welcome.node) << (ran_before ? " runs already" : " runs")
                << ": process " << welcome.pid << ", address " << for_terminal(welcome.address) << "\n";
    return {};
}

}  // namespace

const Command start_command = {
    "start",
    "start this node's daemon, as a job script does",
    "Clients start the daemon when they need it; but where a launcher kills everything that a step leaves behind "
    "(Slurm), the job script starts it\n"
    "first: docs/jobs.md has one. Does nothing when it runs. Returns when it answers.",
    {{"--node", OptionKind::text, "NAME", "The node's name, instead of CAIRN_NODE or the host's."},
     {"--io-node", OptionKind::flag, "",
      "As a dedicated I/O node: it writes for jobs without ranks here whose setting flush.io_nodes says so, and ends with `cairn stop` only."}},
    {{Code::unavailable, "the daemon can not be started; the text says what it said"},
     {Code::already_exists, "it runs already, but not as the I/O node that was asked for"}},
    true,
    &run_start,
};

}  // namespace cairn::cli
