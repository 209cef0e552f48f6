// `cairn status`: what the daemons of this host do, once or again and again.
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <thread>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/daemons.hpp"
#include "storage/targets.hpp"
#include "world/real/cards.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;
using control::NodeStatus;

const NodeStatus* same_daemon(const std::vector<NodeStatus>& all, const NodeStatus& wanted) {
    for (const NodeStatus& status : all)
        if (status.node == wanted.node && status.pid == wanted.pid) return &status;
    return nullptr;
}

// Bytes a second written lately: between two looks, else in the last flush.
double rate_of(const NodeStatus& now, const NodeStatus* before, double seconds) {
    if (before && seconds > 0 && now.written_bytes >= before->written_bytes)
        return static_cast<double>(now.written_bytes - before->written_bytes) / seconds;
    return now.last_flush_s > 0 ? static_cast<double>(now.last_flush_bytes) / now.last_flush_s : 0;
}

std::uint64_t left_bytes(const NodeStatus& status) {
    std::uint64_t left = 0;
    for (const NodeStatus::Flush& flush : status.versions)
        if (flush.level < highest_level && flush.expected_bytes > flush.written_bytes)
            left += flush.expected_bytes - flush.written_bytes;
    return left;
}

std::string time_left(std::uint64_t bytes, double rate) {
    if (bytes == 0) return "-";
    return rate > 0 ? format_duration(static_cast<double>(bytes) / rate) : "?";
}

// A version still under way, or that failed; of the committed ones the newest.
std::vector<const NodeStatus::Flush*> interesting(const NodeStatus& status) {
    std::vector<const NodeStatus::Flush*> out;
    for (std::size_t i = 0; i < status.versions.size(); ++i)
        if (status.versions[i].level < highest_level || i + 1 == status.versions.size()) out.push_back(&status.versions[i]);
    return out;
}

std::string progress_of(const NodeStatus::Flush& flush, std::size_t bar) {
    if (flush.level >= highest_level) return format_bar(1, bar) + " 100 %";
    if (flush.expected_bytes == 0) return "-";
    const double share = static_cast<double>(flush.written_bytes) / static_cast<double>(flush.expected_bytes);
    const std::string percent = std::to_string(static_cast<int>(std::min(share, 1.0) * 100));
    return format_bar(share, bar) + std::string(4 - std::min<std::size_t>(percent.size(), 3), ' ') + percent + " %";
}

struct Look {
    std::vector<NodeStatus> nodes;
    std::vector<Silent> silent;
    std::chrono::steady_clock::time_point when;
};

// Nothing where no daemon lives, or where it ended while we asked.
Result<std::optional<NodeStatus>> status_of(const ScratchLayout& place, std::uint64_t wait_ms) {
    const Deadline deadline = Deadline::in_ms(wait_ms);
    TRY_ASSIGN(const std::optional<Reached> reached, reach(place, wait_ms));
    if (!reached) return std::optional<NodeStatus>();
    Result<NodeStatus> status = reached->connection->ask_for<NodeStatus>(control::GetStatus{}, deadline);
    if (status.code() == Code::unavailable) return std::optional<NodeStatus>();
    if (!status.ok()) return status.status().within(process_text(reached->connection->process()));
    return std::optional<NodeStatus>(std::move(status).value());
}

// `tell` is given what came since it was last called, so that who answered is seen before the silent ones' time is over.
Result<Look> look(const Settings& settings, const Arguments& arguments, const std::function<void(const Look&)>& tell) {
    TRY_ASSIGN(const std::vector<ScratchLayout> places, chosen_daemons(settings, arguments));
    Look seen;
    const auto take = [&](Told<NodeStatus> told) {
        Look more;
        for (auto& [place, answer] : told) {
            if (!answer.ok()) more.silent.push_back({place, answer.status()});
            else if (*answer) more.nodes.push_back(**std::move(answer));
        }
        tell(more);
        for (NodeStatus& node : more.nodes) seen.nodes.push_back(std::move(node));
        for (Silent& silent : more.silent) seen.silent.push_back(std::move(silent));
    };
    const std::uint64_t wait_ms = settings.daemon.start_wait_ms;
    ask_all<NodeStatus>(places, [wait_ms](const ScratchLayout& place) { return status_of(place, wait_ms); }, take);
    std::sort(seen.nodes.begin(), seen.nodes.end(), [](const NodeStatus& a, const NodeStatus& b) { return a.node < b.node; });
    seen.when = std::chrono::steady_clock::now();
    return seen;
}

Status nobody(const Settings& settings) {
    return unavailable("no daemon of this user runs on this host for " + settings.paths.persistent + " (scratch " +
                       settings.paths.scratch + "); `cairn start` starts one");
}

// Until interrupted, or until no daemon is left.
Status watch(Console& console, const Settings& settings, const Arguments& arguments, std::uint64_t interval_ms) {
    Look before;
    for (bool any = false;; any = true) {
        TRY_ASSIGN(Look now, look(settings, arguments, [](const Look&) {}));
        if (now.nodes.empty() && now.silent.empty() && !any) return nobody(settings);
        const double seconds = before.nodes.empty() ? 0 : std::chrono::duration<double>(now.when - before.when).count();
        if (console.json) {
            console.document(status_json(now.nodes, now.silent));
        } else {
            const std::optional<TerminalSize> size = terminal_size(STDOUT_FILENO);  // each time: windows change
            std::string text = now.nodes.empty() ? "" : status_text(now.nodes, before.nodes, seconds, size ? size->columns : 0);
            for (const Silent& silent : now.silent) text += silent.text();
            if (text.empty()) text = "all daemons have ended\n";
            if (size)
                console.out << (any ? "" : "\x1b[H\x1b[2J") + screen_frame(text, *size);
            else
                console.out << text << "\n";
        }
        console.out.flush();
        if ((now.nodes.empty() && now.silent.empty()) || !console.out) return {};
        before = std::move(now);
        std::this_thread::sleep_for(std::chrono::milliseconds(interval_ms));
    }
}

Status run_status(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(const Config config, load_settings(arguments));
    const std::string interval = arguments.given("interval") ? arguments.text("interval") : "1 s";
    const Result<std::uint64_t> interval_ns = parse_duration(interval, 1'000'000'000);
    if (!interval_ns.ok()) return interval_ns.status().within("--interval '" + interval + "'");
    const std::uint64_t interval_ms = std::clamp<std::uint64_t>(*interval_ns / 1'000'000, 100, 3'600'000);
    if (arguments.given("watch")) return watch(console, config.settings, arguments, interval_ms);
    bool any = false;
    const auto show = [&](const Look& more) {
        if (console.json || more.nodes.empty()) return;
        console.out << (std::exchange(any, true) ? "\n" : "")
                    << status_text(more.nodes, {}, 0, terminal_size(STDOUT_FILENO).value_or(TerminalSize{0, 0}).columns) << std::flush;
    };
    TRY_ASSIGN(const Look seen, look(config.settings, arguments, show));
    if (seen.nodes.empty() && seen.silent.empty()) return nobody(config.settings);
    if (console.json) console.document(status_json(seen.nodes, seen.silent));
    return silent_status(seen.silent);
}

}  // namespace

namespace {

// On a terminal as wide as its column gets, so that a table that is drawn again and again does not jump.
std::string steady(const std::string& cell, std::size_t columns) {
    constexpr std::size_t usual = 10;  // "1023 MiB", "2 h 10 min", "1.20 GiB/s"
    const std::size_t have = characters(cell);
    return columns == 0 || have >= usual ? cell : std::string(usual - have, ' ') + cell;
}

std::string shortened(const std::string& name, std::size_t columns) {  // names are ASCII
    const std::size_t most = std::max<std::size_t>(columns / 4, 8);
    return columns == 0 || name.size() <= most ? name : name.substr(0, most - 3) + "...";
}

std::string nodes_text(const std::vector<NodeStatus>& now, const std::vector<NodeStatus>& before, double seconds,
                       std::size_t columns) {
    TextTable table({left("node"), right("process"), right("up"), right("clients"), right("captured"), right("sent"),
                     right("received"), right("written"), right("rate"), right("left"), right("memory"),
                     right("scratch")});
    for (const NodeStatus& status : now) {
        const double rate = rate_of(status, same_daemon(before, status), seconds);
        std::vector<std::string> cells = {format_bytes(status.captured_bytes),
                                          format_bytes(status.sent_bytes),
                                          format_bytes(status.received_bytes),
                                          format_bytes(status.written_bytes),
                                          rate > 0 ? format_rate(rate) : "-",
                                          time_left(left_bytes(status), rate),
                                          format_bytes(status.anonymous_bytes),
                                          format_bytes(status.scratch_bytes)};
        for (std::string& cell : cells) cell = steady(cell, columns);
        cells.insert(cells.begin(), {shortened(for_terminal(status.node), columns), std::to_string(status.pid),
                                     steady(format_duration(static_cast<double>(status.uptime_ms) / 1e3), columns),
                                     std::to_string(status.sessions)});
        table.add(std::move(cells));
    }
    table.fit(columns, {"process", "clients", "up", "sent", "received", "memory", "captured", "scratch"});
    return table.to_string();
}

// The versions, then what went wrong with them.
std::string versions_text(const std::vector<NodeStatus>& now, std::size_t columns) {
    TextTable table(
        {left("node"), left("checkpoint"), right("version"), left("level"), right("images"), left("written here")});
    const std::size_t bar = columns == 0 || columns >= 60 ? 20 : 8;
    std::string notes;
    for (const NodeStatus& status : now)
        for (const NodeStatus::Flush* flush : interesting(status)) {
            const std::string node = for_terminal(status.node), name = for_terminal(flush->key.name),
                              version = std::to_string(flush->key.version);
            std::string progress = progress_of(*flush, bar), level(row_of(flush->level).name);
            if (columns != 0) {  // steady, too
                progress.resize(std::max(progress.size(), bar + 8), ' ');
                level.resize(std::max(level.size(), row_of(highest_level).name.size()), ' ');
            }
            table.add({shortened(node, columns), shortened(name, columns), version, level,
                       steady(format_bytes(flush->bytes), columns), progress});
            if (flush->code != Code::ok)
                notes += node + ", " + version_text(name, flush->key.version) + ": " + for_terminal(flush->text) + "\n";
        }
    table.fit(columns, {"images", "level", "node"});
    return (table.rows() == 0 ? "" : "\n" + table.to_string()) + (notes.empty() ? "" : "\n" + notes);
}

// All daemons here write into one directory: what one of them found is true for all.
std::string targets_text(const std::vector<NodeStatus>& now) {
    for (const NodeStatus& status : now)
        if (!status.targets.empty()) return "\nstorage targets: " + for_terminal(names_text(status.targets)) + "\n";
    return {};
}

// Daemons of one host have the same cards, and mostly use the same.
std::string cards_text(const std::vector<NodeStatus>& now) {
    std::vector<std::string> told;
    for (const NodeStatus& status : now) {
        std::string text, others;
        for (const NodeStatus::Card& card : status.cards) {
            const std::string name = for_terminal(card.interface) + ", " + rate_text(card.rate_mbps);
            const std::string nodes = card.nodes == 0 ? "" : ", to " + std::to_string(card.nodes) + (card.nodes == 1 ? " node" : " nodes");
            if (card.interface == status.card) text = name + nodes;
            else others += (others.empty() ? "" : "; ") + name + nodes;
        }
        if (text.empty()) continue;
        text = "network card: " + text + " (" + for_terminal(status.card_choice) + (others.empty() ? ")" : "; others: " + others + ")") + "\n";
        if (std::find(told.begin(), told.end(), text) == told.end()) told.push_back(std::move(text));
    }
    std::string all;
    for (const std::string& text : told) all += (all.empty() ? "\n" : "") + text;
    return all;
}

std::string io_nodes_text(const std::vector<NodeStatus>& now) {
    std::vector<std::string> names;
    for (const NodeStatus& status : now)
        if (status.io_node) names.push_back(status.node);
    return names.empty() ? "" : "\nI/O nodes: " + for_terminal(names_text(names)) + "\n";
}

// Only where there is something to know: threads that do not just run where a processor idles, and a node of which the daemon has a part.
std::string processors_text(const std::vector<NodeStatus>& now) {
    std::string text;
    for (const NodeStatus& status : now) {
        const std::string node = for_terminal(status.node);
        if (!status.cpu_class.empty() && status.cpu_class != "idle")
            text += node + " runs in class " + for_terminal(status.cpu_class) + ": " + for_terminal(status.cpu_class_why) + "\n";
        if (status.processors < status.processors_in_machine)
            text += node + " has " + std::to_string(status.processors) + " of " + std::to_string(status.processors_in_machine) +
                    " processors, those of the cpuset that it was started in; one that is started outside of the job's may have all (docs/jobs.md)\n";
    }
    return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string status_text(const std::vector<NodeStatus>& now, const std::vector<NodeStatus>& before, double seconds,
                        std::size_t columns) {
    return nodes_text(now, before, seconds, columns) + versions_text(now, columns) + processors_text(now) +
           targets_text(now) + io_nodes_text(now) + cards_text(now);
}

std::string status_json(const std::vector<NodeStatus>& now, const std::vector<Silent>& silent) {
    Json document = {{"nodes", Json::array()}};
    for (const NodeStatus& s : now) {
        Json versions = Json::array(), writers = Json::array();
        for (const NodeStatus::Flush& flush : s.versions)
            versions.push_back({{"checkpoint", flush.key.name},
                                {"version", flush.key.version},
                                {"incarnation", flush.key.incarnation.hex()},
                                {"level", row_of(flush.level).name},
                                {"code", code_name(flush.code)},
                                {"cause", cause_of(flush.code)},
                                {"text", flush.text},
                                {"bytes", flush.bytes},
                                {"written_bytes", flush.written_bytes},
                                {"expected_bytes", flush.expected_bytes}});
        for (const NodeStatus::Writer& writer : s.writers)
            writers.push_back({{"received_s", writer.received_s},
                               {"local_s", writer.local_s},
                               {"received_bytes", writer.received_bytes},
                               {"local_bytes", writer.local_bytes}});
        Json cards = Json::array(), card;  // null: not known
        for (const NodeStatus::Card& each : s.cards) {
            cards.push_back({{"interface", each.interface}, {"rate_mbps", each.rate_mbps}, {"nodes", each.nodes}});
            if (each.interface == s.card) card = {{"interface", each.interface}, {"rate_mbps", each.rate_mbps}, {"why", s.card_choice}};
        }
        document["nodes"].push_back({{"node", s.node},
                                     {"pid", s.pid},
                                     {"address", s.address},
                                     {"card", std::move(card)},
                                     {"cards", std::move(cards)},
                                     {"io_node", s.io_node},
                                     {"uptime_ms", s.uptime_ms},
                                     {"storage", s.storage_backend},
                                     {"clients", s.sessions},
                                     {"cpu_class", s.cpu_class},
                                     {"cpu_class_why", s.cpu_class_why},
                                     {"processors", s.processors},
                                     {"processors_in_machine", s.processors_in_machine},
                                     {"captured_bytes", s.captured_bytes},
                                     {"sent_bytes", s.sent_bytes},
                                     {"received_bytes", s.received_bytes},
                                     {"written_bytes", s.written_bytes},
                                     {"scratch_bytes", s.scratch_bytes},
                                     {"anonymous_bytes", s.anonymous_bytes},
                                     {"anonymous_peak_bytes", s.anonymous_peak_bytes},
                                     {"versions_committed", s.versions_committed},
                                     {"attempts_failed", s.attempts_failed},
                                     {"last_flush_s", s.last_flush_s},
                                     {"last_flush_bytes", s.last_flush_bytes},
                                     {"writers", std::move(writers)},
                                     {"versions", std::move(versions)},
                                     {"targets", s.targets}});
    }
    document["silent"] = silent_json(silent);
    return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

const Command status_command = {
    "status",
    "show what the daemons of this host do",
    "One line a node: bytes captured, sent to leaders, received from followers and written; the rate (in the last "
    "flush, or with --watch since the\n"
    "last look), the time left, anonymous memory, and scratch in use. Below, the versions under way and the newest "
    "one. A narrow\n"
    "terminal shows less.",
    {{"--node", OptionKind::text, "NAME", "Only this node's daemon."},
     {"-w,--watch", OptionKind::flag, "", "Again and again, until interrupted or until no daemon is left."},
     {"--interval", OptionKind::text, "TIME", "Time between two looks of --watch; default \"1 s\"."}},
    {{Code::unavailable, "no daemon runs on this host for this persistent directory"},
     {Code::deadline, "a daemon did not answer; what the others do is shown"}},
    true,
    &run_status,
};

}  // namespace cairn::cli
