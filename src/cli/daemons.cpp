#include "cli/daemons.hpp"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text_table.hpp"
#include "format/names.hpp"

namespace cairn::cli {

std::string this_node() {
    if (const char* name = std::getenv("CAIRN_NODE"); name && *name) return name;
    char host[HOST_NAME_MAX + 1] = {};
    ::gethostname(host, HOST_NAME_MAX);
    const std::string name(host);
    return name.substr(0, name.find('.'));
}

Result<std::vector<ScratchLayout>> chosen_daemons(const Settings& settings, const Arguments& arguments) {
    if (!arguments.given("node")) return scratch_roots(settings);
    TRY(check_name(arguments.text("node")).within("--node"));
    return std::vector<ScratchLayout>{
        ScratchLayout::of(settings.paths.scratch, ::geteuid(), arguments.text("node"), settings.paths.persistent)};
}

Result<std::optional<Reached>> reach(const ScratchLayout& scratch, std::uint64_t wait_ms) {
    const Deadline deadline = Deadline::in_ms(wait_ms);
    Result<std::unique_ptr<Connection>> connection = Connection::connect(scratch, deadline);
    if (!connection.ok()) {
        const bool none = connection.code() == Code::not_found || connection.code() == Code::unavailable;
        if (none) return std::optional<Reached>();
        return connection.status();
    }
    Reached reached{std::move(connection).value(), {}};
    Result<control::Welcome> welcome = reached.connection->hello(false, deadline);
    if (welcome.code() == Code::unavailable) return std::optional<Reached>();  // it was just ending, or being killed
    if (welcome.code() == Code::deadline) return welcome.status().within(process_text(reached.connection->process()));
    TRY_ASSIGN(reached.welcome, std::move(welcome));
    return std::optional<Reached>(std::move(reached));
}

std::string process_text(pid_t process) { return "process " + std::to_string(process); }

std::string Silent::text() const {
    const bool stands_still = why.code() == Code::deadline;
    return for_terminal("the daemon in " + place.root + " was not heard: " + why.text()) +
           (stands_still ? "; if it was stopped, SIGCONT lets it go on\n" : "\n");
}

Status silent_status(const std::vector<Silent>& silent) {
    if (silent.empty()) return {};
    std::string text;
    for (const Silent& each : silent) {
        std::string line = each.text();
        line.pop_back();
        text += (text.empty() ? "" : "; ") + line;
    }
    return Status(silent.front().why.code(), std::move(text));
}

nlohmann::ordered_json silent_json(const std::vector<Silent>& silent) {
    auto list = nlohmann::ordered_json::array();
    for (const Silent& each : silent) list.push_back({{"scratch", each.place.root}, {"why", each.why.to_string()}});
    return list;
}

}  // namespace cairn::cli
