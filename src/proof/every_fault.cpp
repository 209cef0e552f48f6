// What goes wrong, once; a little later all is well again: daemons are started, nodes come back, the network heals.
#include "proof/every_fault.hpp"

#include <algorithm>
#include <charconv>

namespace cairn::testing {

namespace {

constexpr Nanos at_once = millisecond;
constexpr Nanos long_after = 3 * second;  // than peers wait for each other (FlushSettings::peer_wait), and less than the job does

using sim::Faults;

bool has_daemon(SeedRun& run, NodeIndex node) { return run.cluster.hosts[node].process != nullptr; }
bool is_well(SeedRun& run, NodeIndex node) { return has_daemon(run, node) && run.cluster.hosts[node].booted && !run.cluster.hosts[node].process->is_paused(); }
bool is_awake(SeedRun& run, NodeIndex node) { return has_daemon(run, node) && !run.cluster.hosts[node].process->is_paused(); }
bool is_alive(SeedRun& run, NodeIndex node) { return run.cluster.hosts[node].node->alive(); }
bool is_whole(SeedRun& run, NodeIndex) { return run.cluster.sim.blocked().empty(); }
bool job_lives(SeedRun& run, NodeIndex) { return run.known.job_lives; }
bool anything_lives(SeedRun& run, NodeIndex) { return is_alive(run, 0) || is_alive(run, 1); }

void later(SeedRun& run, Nanos span, std::function<void()> action) { run.cluster.sim.at(run.cluster.sim.now() + span, std::move(action)); }

void start_later(SeedRun& run, NodeIndex node, Nanos span) {
    later(run, span, [&run, node] {
        if (!run.cluster.hosts[node].node->alive()) run.cluster.restart_node(node);
        if (!has_daemon(run, node)) run.cluster.start_daemon(node);
    });
}

void kill_with(SeedRun& run, NodeIndex node, Faults::Left left, Nanos span) {
    run.cluster.sim.faults().left = left;
    run.cluster.kill_daemon(node);
    run.cluster.sim.faults().left = Faults::Left::drawn;
    start_later(run, node, span);
}

void pause_for(SeedRun& run, NodeIndex node, Nanos span) {
    sim::Process* process = run.cluster.hosts[node].process;
    process->pause();
    later(run, span, [process] {
        if (process->alive()) process->resume();
    });
}

// It ends in order, as far as it gets in a second, and is started again when others gave it up.
void stop(SeedRun& run, NodeIndex node) {
    run.cluster.stop_daemon(node, second, std::make_shared<Cluster::Ended>());
    start_later(run, node, long_after);
}

// A second one is started beside it, and then it goes on, too.
void succeed(SeedRun& run, NodeIndex node) {
    run.cluster.succeed_daemon(node);
    later(run, long_after, [&run, node] {
        for (const Daemon& former : run.cluster.hosts[node].formers) former.process->resume();
    });
}

// The job dies with its processes.
void end_ranks(SeedRun& run, NodeIndex node) {
    const std::vector<sim::Process*> processes = run.cluster.hosts[node].node->processes();
    for (sim::Process* process : processes)
        if (process->name() != "cairnd") process->kill();
    run.known.job_lives = false;
}

void crash_with(SeedRun& run, NodeIndex node, Faults::Left left, Faults::Unsynced unsynced) {
    Faults& faults = run.cluster.sim.faults();
    faults.left = left;
    faults.unsynced = unsynced;
    if (is_alive(run, node)) run.cluster.crash_node(node);
    faults.left = Faults::Left::drawn;
    faults.unsynced = Faults::Unsynced::drawn;
    for (NodeIndex each = 0; each < run.cluster.hosts.size(); ++each) end_ranks(run, each);
    start_later(run, node, long_after);
}

void power_with(SeedRun& run, Faults::Left left, Faults::Unsynced unsynced) {
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) crash_with(run, node, left, unsynced);
}

void cut(SeedRun& run, bool from_first, bool from_second) {
    if (from_first) run.cluster.sim.block(0, 1);
    if (from_second) run.cluster.sim.block(1, 0);
    later(run, long_after, [&run] { run.cluster.sim.heal(); });
}

constexpr const char* names = "open create resize stat mkdir publish replace remove rmdir list map";
constexpr const char* changes = "create resize mkdir publish replace remove rmdir";
constexpr const char* storage = "open create resize stat mkdir publish replace remove rmdir list statvfs map read write fsync fsync_directory";

void fail(Faults& faults) {
    faults.read_error = faults.write_error = faults.metadata_error = faults.fsync_error = 1;
    faults.error_done = 0;
}
void hang(Faults& faults) { faults.hang_io = faults.hang_never = 1; }
void late(Faults& faults) {  // than anybody of the flush waits for it, and when nobody does any more it happens
    faults.hang_io = 1;
    faults.hang_never = 0;
    faults.hang_io_min = 5 * second;
    faults.hang_io_max = 6 * second;
}
void hang_checksums(Faults& faults) { faults.hang_scratch = faults.hang_never = 1; }
void late_checksums(Faults& faults) {
    late(faults);
    faults.hang_io = 0;
    faults.hang_scratch = 1;
}
void late_message(Faults& faults) {
    faults.message_delay = faults.payload_delay = 1;
    faults.message_delay_min = 2 * second + 500 * millisecond;
    faults.message_delay_max = 3 * second + 500 * millisecond;
}

}  // namespace

const std::vector<StepFault>& step_faults() {
    using Left = Faults::Left;
    using Unsynced = Faults::Unsynced;
    static const std::vector<StepFault> all = {
        {"kill", true, has_daemon, [](SeedRun& run, NodeIndex node) { kill_with(run, node, Left::nothing, at_once); }},
        {"kill-working", true, has_daemon, [](SeedRun& run, NodeIndex node) { kill_with(run, node, Left::under_way, at_once); }},  // the system is at it still
        {"away", true, has_daemon, [](SeedRun& run, NodeIndex node) { kill_with(run, node, Left::all, long_after); }},
        {"pause", true, is_awake, [](SeedRun& run, NodeIndex node) { pause_for(run, node, long_after); }},
        {"stop", true, is_well, stop},
        {"succeed", true, is_well, succeed},
        {"crash", true, is_alive, [](SeedRun& run, NodeIndex node) { crash_with(run, node, Left::nothing, Unsynced::lost); }},
        {"crash-kept", true, is_alive, [](SeedRun& run, NodeIndex node) { crash_with(run, node, Left::all, Unsynced::kept); }},
        {"crash-torn", true, is_alive, [](SeedRun& run, NodeIndex node) { crash_with(run, node, Left::part, Unsynced::some); }},
        {"power", false, anything_lives, [](SeedRun& run, NodeIndex) { power_with(run, Left::nothing, Unsynced::lost); }},
        {"power-kept", false, anything_lives, [](SeedRun& run, NodeIndex) { power_with(run, Left::all, Unsynced::kept); }},
        {"power-torn", false, anything_lives, [](SeedRun& run, NodeIndex) { power_with(run, Left::part, Unsynced::some); }},
        {"cut", false, is_whole, [](SeedRun& run, NodeIndex) { cut(run, true, true); }},
        {"deaf", true, is_whole, [](SeedRun& run, NodeIndex node) { cut(run, node == 1, node == 0); }},  // it hears nothing, and is heard
        {"job", false, job_lives, [](SeedRun& run, NodeIndex) { end_ranks(run, 0), end_ranks(run, 1); }},
    };
    return all;
}

const std::vector<OperationFault>& operation_faults() {
    static const std::vector<OperationFault> all = {
        {"fail", storage, false, false, fail},
        {"fail-done", changes, false, false, [](Faults& faults) { fail(faults), faults.error_done = 1; }},
        {"full", "create write resize mkdir", false, false, [](Faults& faults) { faults.out_of_space = 1; }},
        {"hang", storage, false, false, hang},
        {"late", storage, false, false, late},
        {"hang", "checksums", false, false, hang_checksums},
        {"late", "checksums", false, false, late_checksums},
        {"short", "read write", false, false, [](Faults& faults) { faults.short_transfer = 1; }},
        {"stale", "read", false, true, [](Faults& faults) { faults.stale_read = 1; }},
        {"other", "read", false, true, [](Faults& faults) { faults.other_read = 1; }},
        {"lost", "resize", true, true, [](Faults& faults) { faults.resize_lost = 1; }},
        {"twin", "open", true, true, [](Faults& faults) { faults.twin_open = 1; }},
        {"hole", "write", true, true, [](Faults& faults) { faults.grow_lost = 1; }},
        {"rename", "publish", true, true, [](Faults& faults) { faults.publish_renames = 1; }},
        {"lose", "send payload", false, false, [](Faults& faults) { faults.message_loss = faults.payload_loss = 1; }},
        {"late", "send payload", false, false, late_message},
        {"repeat", "send", false, false, [](Faults& faults) { faults.message_repeat = 1; }},
        {"damage", "payload", false, false, [](Faults& faults) { faults.payload_damage = 1; }},
        {"unsent", "send", true, false, [](Faults& faults) { faults.send_error = 1, faults.error_done = 0; }},
        {"unheard", "send", true, false, [](Faults& faults) { faults.send_error = faults.error_done = 1; }},  // it left, and its sender does not know
    };
    return all;
}

namespace {

template <class Kind>
const Kind* find_by_name(const std::vector<Kind>& kinds, std::string_view name) {
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) { return kind.name == name; });
    return found == kinds.end() ? nullptr : &*found;
}
const StepFault* find_step_fault(std::string_view name) { return find_by_name(step_faults(), name); }
const OperationFault* find_operation_fault(std::string_view name) { return find_by_name(operation_faults(), name); }

}  // namespace

bool strikes(const OperationFault& fault, const std::string& operation, const std::string& detail, bool before) {
    if (fault.before != before) return false;
    if ((" " + std::string(fault.operations) + " ").find(" " + operation + " ") == std::string::npos) return false;
    return !fault.shared || detail.compare(0, 11, "/persistent") == 0;
}

std::string to_text(const std::vector<Fault>& faults) {
    std::string text;
    for (const Fault& fault : faults) {
        text += (text.empty() ? "" : " ") + std::string(fault.of_operation ? "o" : "") + std::to_string(fault.at) + ":" + std::string(fault.name);
        if (!fault.of_operation && find_step_fault(fault.name)->of_node) text += ":" + std::to_string(fault.node);
    }
    return text;
}

namespace {

Result<Fault> parse_fault(const std::string& text) {
    const auto wrong = [&] { return invalid_argument("'" + text + "' is no fault (as in 17:kill:0, 40:power, o23:hang)"); };
    Fault fault;
    fault.of_operation = text[0] == 'o';
    const char* const end = text.data() + text.size();
    const auto [colon, error] = std::from_chars(text.data() + fault.of_operation, end, fault.at);
    if (error != std::errc() || colon == end || *colon != ':') return wrong();
    std::string name(colon + 1, end);
    if (fault.of_operation) {
        const OperationFault* kind = find_operation_fault(name);
        if (!kind) return wrong();
        fault.name = kind->name;
        return fault;
    }
    const std::size_t second = name.find(':');
    const std::string node = second == std::string::npos ? "" : name.substr(second + 1);
    const StepFault* kind = find_step_fault(name.substr(0, second));
    if (!kind || (kind->of_node ? node != "0" && node != "1" : second != std::string::npos)) return wrong();
    fault.name = kind->name;
    fault.node = node == "1" ? 1 : 0;
    return fault;
}

}  // namespace

Result<std::vector<Fault>> parse_faults(const std::string& text) {
    std::vector<Fault> faults;
    std::istringstream in(text);
    for (std::string piece; in >> piece;) {
        Result<Fault> fault = parse_fault(piece);
        if (!fault.ok()) return std::move(fault).status();
        faults.push_back(*fault);
    }
    return faults;
}

}  // namespace cairn::testing
