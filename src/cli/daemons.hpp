// Daemons: those of this user on this host that work for one persistent directory, asked over their sockets.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/place.hpp"
#include "client/connection.hpp"

namespace cairn::cli {

// The node meant where none is named: $CAIRN_NODE, else the host's name up to its first dot, as clients and cairnd have
// it.
std::string this_node();

// Where to look: --node, or every node that has a directory in scratch.
Result<std::vector<ScratchLayout>> chosen_daemons(const Settings& settings, const Arguments& arguments);

// A daemon that answered Hello; nothing when none runs there. Other failures are errors.
struct Reached {
    std::unique_ptr<Connection> connection;
    control::Welcome welcome;
};
Result<std::optional<Reached>> reach(const ScratchLayout& scratch, std::uint64_t wait_ms);

// A daemon that was asked and did not answer, and why. The others are asked all the same.
struct Silent {
    ScratchLayout place;
    Status why;
    std::string text() const;  // a line
};
// "process 17"
std::string process_text(pid_t process);
// ok where all answered; else the first one's code, and what there is to say of each.
Status silent_status(const std::vector<Silent>& silent);
// The same for scripts: a list of where, and why.
nlohmann::ordered_json silent_json(const std::vector<Silent>& silent);

// What `cairn status` prints, made from answers; `before` are those of `seconds` ago (empty: none), for the rates.
// `columns`: of the terminal, 0 where there is none; what has no room in it is left out, the least important first.
std::string status_text(const std::vector<control::NodeStatus>& now, const std::vector<control::NodeStatus>& before,
                        double seconds, std::size_t columns);
std::string status_json(const std::vector<control::NodeStatus>& now, const std::vector<Silent>& silent = {});

}  // namespace cairn::cli
