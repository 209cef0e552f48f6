#include "daemon/manual.hpp"

#include <string_view>

#include "base/roff.hpp"
#include "daemon/process.hpp"

namespace cairn {

namespace {

struct Option {
    std::string_view name, value, doc;
};
constexpr Option options[] = {
    {"--foreground", "", "stay in the terminal, log to standard error; without a keeper"},
    {"--io-node", "", "write for jobs that run no ranks here (setting flush.io_nodes); does not end when idle"},
    {"--node", "NAME", "this node's name (default: $CAIRN_NODE, else the host's name up to its first dot)"},
    {"--scratch", "DIRECTORY", "node-local directory for images (default: setting paths.scratch)"},
    {"--persistent", "DIRECTORY", "shared directory for checkpoints (default: setting paths.persistent)"},
    {"--help", "", "this text"},
    {"--version", "", "the version"},
};

struct ExitNote {
    Exit code;
    std::string_view text;
};
constexpr ExitNote exits[] = {
    {Exit::fine, "ended for want of work, or stopped with everything finished, or another one runs already"},
    {Exit::unfinished, "stopped with sealed versions left in scratch, which the next daemon finishes"},
    {Exit::usage, "wrong arguments or settings"},
    {Exit::cannot_start, "can not start: scratch, lock, socket or network; the text says which"},
    {Exit::at_once, "ended at once by a second signal"},
};

constexpr std::string_view line = "turns the images of this node's processes into checkpoints, in the background";

constexpr std::string_view description =
    "The node daemon of Cairn. It takes sealed images from node-local scratch, agrees with the daemons of the job's "
    "other "
    "nodes, and writes them\n"
    "to the shared directory as a few checksummed files, while the application computes. It outlives the application: "
    "what was sealed is\n"
    "committed also when every process of the job is dead.\n"
    "\n"
    "Clients start it when they need it; `cairn start` and `cairn stop` do so by hand or from a job script. There is "
    "one "
    "for each user, node\n"
    "name, scratch and persistent directory: another one ends at once, with 0. It goes into the background, and "
    "returns "
    "when it accepts\n"
    "connections. It ends by itself when it has had nothing to do for daemon.idle_s.\n"
    "\n"
    "Killed, or stopped with work left, it loses nothing that is in scratch: the next one finds sealed images there "
    "and "
    "finishes them. Images of\n"
    "versions that were given up or removed (`cairn rm`) are discarded, not committed again. In the background a keeper, a "
    "small process cairnd-keeper\n"
    "beside it, starts a daemon that was killed or crashed again (setting daemon.restart), and says so in the log.";

constexpr std::string_view signals =
    "SIGTERM and SIGINT: finishes what it can within daemon.stop_wait_ms, logs what it did not, and ends. A second one "
    "ends it at once. Its keeper passes them on.";

constexpr std::string_view settings =
    "The same settings as for clients: cairn.toml, and CAIRN_SECTION_KEY in the environment; `cairn config` lists them "
    "and says where each came\n"
    "from.";

std::string usage() {
    std::string text = "cairnd";
    for (const Option& option : options)
        text += " [" + std::string(option.name) + (option.value.empty() ? "" : " ") + std::string(option.value) + "]";
    return text;
}

}  // namespace

std::string daemon_help() {
    std::string text = "cairnd " CAIRN_VERSION ": " + std::string(line) + ".\n\nusage: " + usage() + "\n\n";
    for (const Option& option : options) {
        std::string name = "  " + std::string(option.name) + " " + std::string(option.value);
        name.resize(26, ' ');
        text += name + std::string(option.doc) + "\n";
    }
    text += "\n" + std::string(description) + "\n\n" + std::string(signals) + "\n\n" + std::string(settings) +
            "\n\nExit codes:\n";
    for (const ExitNote& exit : exits)
        text += "  " + std::to_string(static_cast<int>(exit.code)) + "  " + std::string(exit.text) + "\n";
    return text;
}

std::string daemon_manual_page() {
    std::string page =
        ".\\\" Made by `cairnd --man`; do not edit.\n"
        ".TH CAIRND 8 \"\" \"cairn " CAIRN_VERSION
        "\" \"Cairn\"\n"
        ".SH NAME\ncairnd \\- " +
        roff(line) + "\n.SH SYNOPSIS\n" + roff(usage()) + "\n.SH DESCRIPTION\n" + roff_paragraphs(description) +
        ".SH OPTIONS\n";
    for (const Option& option : options) {
        page += ".TP\n\\fB" + roff(option.name) + "\\fR";
        if (!option.value.empty()) page += " \\fI" + roff(option.value) + "\\fR";
        page += "\n" + roff(option.doc) + "\n";
    }
    page +=
        ".SH SIGNALS\n" + roff_paragraphs(signals) + ".SH SETTINGS\n" + roff_paragraphs(settings) + ".SH EXIT STATUS\n";
    for (const ExitNote& exit : exits)
        page += ".TP\n" + std::to_string(static_cast<int>(exit.code)) + "\n" + roff(exit.text) + "\n";
    page +=
        ".SH FILES\n"
        ".TP\n\\fISCRATCH/cairn\\-UID\\-NODE\\-HASH\\fR\n"
        "Its directory in scratch: \\fIlock\\fR (held for life), \\fIsock\\fR, \\fIlog\\fR, \\fIjobs\\fR, "
        "\\fIimages\\fR.\n"
        ".SH SEE ALSO\n\\fBcairn\\fR(1)\n";
    return page;
}

}  // namespace cairn
