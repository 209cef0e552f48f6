// `cairn describe`: what Cairn sees in files: which of their bytes are arrays of numbers, of which type and shape.
#include <algorithm>
#include <set>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/config.hpp"
#include "base/units.hpp"
#include "cli/command.hpp"
#include "cli/rows.hpp"
#include "describe/file.hpp"
#include "describe/similarity.hpp"
#include "describer/describer.hpp"
#include "describer/rules_file.hpp"
#include "world/real/memory.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

struct SeenFile {
    std::string path;
    std::uint64_t bytes = 0;
    Description description;  // empty: the status says why
    Status status;
};

constexpr std::chrono::seconds describer_wait{30};  // nobody else waits meanwhile, and a file may have very many arrays

Result<SeenFile> look_at(const std::string& path, const Describers& describers) {
    TRY_ASSIGN(const BufferPtr file, map_file(path, false, [](const std::function<void()>& unmap) { unmap(); }));
    const ByteView bytes(file->data(), file->size());
    SeenFile seen;
    seen.path = path;
    seen.bytes = bytes.size();
    Result<Description> description = describe_file({path, bytes, path, 0}, describers);
    seen.status = description.status();
    if (description.ok()) seen.description = std::move(description).value();
    if (file->has_lost_bytes()) return Status(Code::io_error, path + ": became shorter while it was read, or the disk does not give it");
    return seen;
}

std::string share_text(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return "-";
    const auto tenths = static_cast<std::uint64_t>(1000.0 * static_cast<double>(part) / static_cast<double>(whole));
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

std::string order_text(const Extent& extent) {
    if (extent.type == DataType::bytes || type_bytes(extent.type) == 1) return "-";
    return extent.is_big_endian ? "big" : "little";
}

std::string why_not_all(const SeenFile& seen) {
    if (!seen.status.ok()) return for_terminal(seen.status.text());
    const std::vector<Extent>& extents = seen.description.extents;
    if (extents.size() >= extents_max) return "of more arrays than " + std::to_string(extents_max) + " the rest is not looked at";
    if (extents.empty() && seen.bytes > 0) return "it has no array that is stored as it is: none at all, or compressed ones";
    return "";
}

std::set<std::string> keys_of(const SeenFile& seen, NameRule names) {
    std::set<std::string> keys;
    for (const Extent& extent : seen.description.extents) keys.insert(similarity_key(extent, names));
    return keys;
}

void print_files(Console& console, const std::vector<SeenFile>& files, NameRule names, bool all) {
    Rows rows(console, TextTable({left("file"), left("format"), right("bytes"), right("arrays"), right("keys"), right("described"), left("why not all")}), all);
    std::uint64_t bytes = 0, described = 0, arrays = 0;
    std::set<std::string> all_keys;
    for (const SeenFile& seen : files) {
        std::set<std::string> keys = keys_of(seen, names);
        const std::string count = seen.status.ok() ? std::to_string(keys.size()) : "-";
        all_keys.merge(keys);
        arrays += seen.description.extents.size();
        bytes += seen.bytes;
        described += seen.description.described_bytes();
        rows.add({for_terminal(seen.path), seen.status.ok() ? std::string(seen.description.format) : "-", format_bytes(seen.bytes), seen.status.ok() ? std::to_string(seen.description.extents.size()) : "-", count,
                  share_text(seen.description.described_bytes(), seen.bytes), why_not_all(seen)});
    }
    rows.print("no files");
    console.out << "\n" << plural(files.size(), "file") << ", " << format_bytes(bytes) << ", of which " << share_text(described, bytes) << " are described: " << plural(arrays, "array") << " of " << plural(all_keys.size(), "key") << "\n";
}

void print_extents(Console& console, const SeenFile& seen, bool all) {
    console.out << "\n";
    Rows rows(console, TextTable({left("array"), left("type"), left("byte order"), left("shape"), right("bytes"), right("at")}), all);
    for (const Extent& extent : seen.description.extents)
        rows.add({for_terminal(extent.name.empty() ? "-" : extent.name), type_name(extent.type), order_text(extent), axes_text(extent.shape), format_bytes(extent.length), std::to_string(extent.offset)});
    rows.print("no arrays");
}

Json extents_json(const Description& description, NameRule names) {
    Json extents = Json::array();
    for (const Extent& extent : description.extents)
        extents.push_back({{"name", extent.name}, {"key", similarity_key(extent, names)}, {"type", type_name(extent.type)}, {"big_endian", extent.is_big_endian}, {"shape", extent.shape}, {"offset", extent.offset}, {"length", extent.length}});
    return extents;
}

void print_json(Console& console, const std::vector<SeenFile>& files, NameRule names) {
    Json rows = Json::array();
    for (const SeenFile& seen : files) {
        Json row = {{"file", seen.path}, {"bytes", seen.bytes}, {"described_bytes", seen.description.described_bytes()}};
        if (seen.status.ok()) {
            row["format"] = seen.description.format;
            row["extents"] = extents_json(seen.description, names);
        } else {
            row["why"] = seen.status.text();
        }
        rows.push_back(std::move(row));
    }
    const Json document = {{"files", std::move(rows)}};
    console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
}

Status run_describe(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(const Config config, load_config());
    TRY_ASSIGN(auto rules, load_file_rules(arguments.given("rules") ? arguments.text("rules") : config.settings.describe.rules));
    survive_lost_bytes();
    Describer describer(describer_program());
    const auto elsewhere = [&](const std::string& path, std::uint64_t offset, std::uint64_t length) { return describer.describe(path, offset, length, describer_wait); };
    const auto names = static_cast<NameRule>(config.settings.describe.names);  // daemon/options.cpp holds them together
    const Describers describers{elsewhere, std::move(rules), names};
    std::vector<SeenFile> files;
    for (const std::string& path : arguments.texts("FILE")) {
        TRY_ASSIGN(SeenFile seen, look_at(path, describers));
        files.push_back(std::move(seen));
    }
    if (console.json) {
        print_json(console, files, names);
        return {};
    }
    print_files(console, files, names, arguments.given("all"));
    if (files.size() == 1 && files.front().status.ok()) print_extents(console, files.front(), arguments.given("all"));
    return {};
}

}  // namespace

const Command describe_command = {
    "describe",
    "show which bytes of files are arrays of numbers, as codecs see them",
    "Reads files as `cairn watch` takes them, and prints which share of their bytes Cairn can describe: a codec that predicts numbers does so along the axes that are known here. "
    "Of a single file also its arrays, with type, byte order and shape.\n\n"
    "What is not described is stored as it is, or encoded by what a sample tells of it. Every file comes back byte for byte, described or not.\n\n"
    "Arrays with one key are taken for the same variable of several ranks, groups or files, and are encoded alike. The setting describe.names says which names make one key.\n\n"
    "Rules describe files that no format does, as a program writes them with a header of its own. They stand in a file in TOML, which the setting describe.rules or --rules names:\n\n"
    "  [[rule]]\n"
    "  files = \"restart.*.dat\"   # a pattern of the file's name (of a routed file: of its region); with a \"/\" of all of its path\n"
    "  type = \"<f8\"              # as NumPy calls it: < little endian, > big endian; i, u, f or c, and bytes of a number; or <bfloat16\n"
    "  offset = 64               # bytes before the first number; 0 if not given\n"
    "  shape = [-1, 3]           # the axis that changes slowest first; -1: as many as there are; [-1] if not given\n"
    "  name = \"x\"                # arrays of one name are taken for alike; none if not given\n\n"
    "Several rules may speak of one file; of two that lie over each other the first in the file counts. A rule goes before what a format says, and describes as much of a short file as there is.",
    {{"FILE", OptionKind::text, "", "The files.", true, true}, {"--rules", OptionKind::text, "RULES", "A file of rules, instead of that of the setting describe.rules."}, {"--all", OptionKind::flag, "", "All rows, however many."}},
    {{Code::not_found, "no such file"}, {Code::invalid_argument, "a rule is wrong; which one and what is allowed is said"}},
    false,
    &run_describe,
};

}  // namespace cairn::cli
