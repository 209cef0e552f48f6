// `cairn config`: every setting, its value and where it came from.
#include "base/config.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text_table.hpp"
#include "cli/command.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

Result<std::vector<std::size_t>> chosen_keys(const std::vector<std::string>& wanted) {
    std::vector<std::size_t> rows;
    const auto keys = config_keys();
    for (std::size_t i = 0; i < keys.size(); ++i)
        if (wanted.empty()) rows.push_back(i);
    for (const std::string& name : wanted) {
        const std::size_t before = rows.size();
        for (std::size_t i = 0; i < keys.size(); ++i)
            if (keys[i].full_name() == name || keys[i].section == name) rows.push_back(i);
        if (rows.size() == before)
            return not_found("no setting and no section is named " + name + "; `cairn config` lists all");
    }
    return rows;
}

void print_table(Console& console, const Config& config, const std::vector<std::size_t>& rows) {
    const auto keys = config_keys();
    TextTable table({left("key"), left("value"), left("from")});
    for (const std::size_t i : rows) {
        const std::string value = keys[i].format(keys[i].get(config.settings));
        table.add({keys[i].full_name(), value.empty() ? "-" : for_terminal(value),
                   for_terminal(config.origins[i].to_string())});
    }
    console.out << table.to_string();
}

void print_json(Console& console, const Config& config, const std::vector<std::size_t>& rows) {
    Json settings = Json::array();
    for (const std::size_t i : rows) {
        const ConfigKey& key = config_keys()[i];
        const ConfigValue value = key.get(config.settings);
        Json row = {{"key", key.full_name()}};
        if (key.kind == ConfigKind::choice)
            row["value"] = key.format(value);
        else
            std::visit([&](const auto& plain) { row["value"] = plain; }, value);
        row["text"] = key.format(value);
        row["from"] = config.origins[i].to_string();
        row["variable"] = key.variable();
        row["allowed"] = key.allowed();
        row["description"] = key.doc;
        settings.push_back(std::move(row));
    }
    const Json document = {{"file", config.file.empty() ? Json() : Json(config.file)},
                           {"settings", std::move(settings)}};
    console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
}

Status run_config(Console& console, const Arguments& arguments) {
    if (arguments.given("markdown")) {
        console.out << config_markdown();
        return {};
    }
    TRY_ASSIGN(const std::vector<std::size_t> rows, chosen_keys(arguments.texts("KEY")));
    TRY_ASSIGN(const Config config, load_config());
    if (console.json)
        print_json(console, config, rows);
    else
        print_table(console, config, rows);
    return {};
}

}  // namespace

const Command config_command = {
    "config",
    "show every setting, its value and where it came from",
    "Reads the settings as every part of Cairn does and prints them: the value, and where it came from (default, file "
    "and line, or\n"
    "environment variable). Mistakes are named with file, line and what is allowed.",
    {{"KEY", OptionKind::text, "", "Only these: section.key, or a whole section.", false, true},
     {"--markdown", OptionKind::flag, "",
      "The page docs/settings.md instead: every key with its default and what it does."}},
    {{Code::invalid_argument, "an unknown key or a bad value; all of them are named"},
     {Code::not_found, "no such key, or the file that CAIRN_CONFIG names does not exist"}},
    false,
    &run_config,
};

}  // namespace cairn::cli
