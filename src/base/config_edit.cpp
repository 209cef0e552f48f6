#include "base/config_edit.hpp"

#include <algorithm>
#include <optional>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace cairn {

namespace {

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t end = std::min(text.find('\n', from), text.size());
        lines.push_back(text.substr(from, end - from));
        from = end + 1;
    }
    return lines;
}

// "[flush]  # what it is" is flush; nothing where the line is no header.
std::optional<std::string> header_of(const std::string& line) {
    const std::string_view text = trimmed(line);
    if (!text.starts_with("[") || text.starts_with("[[")) return std::nullopt;
    return std::string(trimmed(text.substr(1, text.find(']') - 1)));
}

// Where the value of `key = value` starts, behind the blanks; nothing where the line is not of that key.
std::optional<std::size_t> value_at(const std::string& line, std::string_view key) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) return std::nullopt;
    std::string name;
    for (const char c : trimmed(std::string_view(line).substr(0, equals)))
        if (c != ' ' && c != '\t' && c != '"' && c != '\'') name += c;
    if (name != key) return std::nullopt;
    return std::min(line.find_first_not_of(" \t", equals + 1), line.size());
}

// Where a value ends: before the blanks and the comment behind it.
std::size_t value_end(const std::string& line, std::size_t from) {
    char quote = 0;
    std::size_t end = from;
    for (std::size_t at = from; at < line.size(); ++at) {
        const char c = line[at];
        if (quote != 0) {
            if (c == '\\' && quote == '"') ++at;
            else if (c == quote) quote = 0;
        } else if (c == '#') {
            break;
        } else if (c == '"' || c == '\'') {
            quote = c;
        }
        if (c != ' ' && c != '\t' && c != '\r') end = at + 1;
    }
    return std::min(end, line.size());
}

void change(std::vector<std::string>& lines, const std::string& section, const std::string& key, const std::string& value) {
    std::string here;
    std::optional<std::size_t> last;  // line of the section that says something
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (const auto header = header_of(lines[i])) here = *header;
        const std::string wanted = here == section ? key : here.empty() ? section + "." + key : "";
        const auto from = wanted.empty() ? std::nullopt : value_at(lines[i], wanted);
        if (from) {
            lines[i].replace(*from, value_end(lines[i], *from) - *from, value);
            return;
        }
        if (here == section && !trimmed(lines[i]).empty() && (!trimmed(lines[i]).starts_with("#") || !last)) last = i;
    }
    const std::string line = key + " = " + value;
    if (last) {
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(*last) + 1, line);
        return;
    }
    if (!lines.empty()) lines.emplace_back();
    lines.push_back("[" + section + "]");
    lines.push_back(line);
}

// Whether the text, as TOML, has this value.
bool has(const std::string& text, const std::string& section, const std::string& key, const std::string& value) {
    const toml::parse_result got = toml::parse(text), wanted = toml::parse("value = " + value);
    if (!got || !wanted) return false;
    const auto found = got.table()[section][key];
    if (!found) return false;
    toml::table alone;
    alone.insert_or_assign("value", *found.node());
    return alone == wanted.table();
}

}  // namespace

Result<std::string> edit_config(const std::string& text, const std::vector<ConfigChange>& changes) {
    if (const toml::parse_result parsed = toml::parse(text); !parsed) return invalid_argument("it is not TOML: " + std::string(parsed.error().description()));
    std::vector<std::string> lines = lines_of(text);
    const auto split = [](const std::string& name) { return std::pair{name.substr(0, name.find('.')), name.substr(name.find('.') + 1)}; };
    for (const auto& [name, value] : changes) change(lines, split(name).first, split(name).second, value);
    std::string edited;
    for (const std::string& line : lines) edited += line + "\n";
    for (const auto& [name, value] : changes)
        if (!has(edited, split(name).first, split(name).second, value))
            return invalid_argument("its layout is not one that is understood (an inline table?): set " + name + " = " + value + " by hand");
    return edited;
}

std::string config_difference(const std::string& before, const std::string& after) {
    const std::vector<std::string> old_lines = lines_of(before), new_lines = lines_of(after);
    std::string text;
    std::size_t i = 0;
    for (const std::string& line : new_lines) {
        if (i < old_lines.size() && old_lines[i] == line) {
            ++i;
            continue;
        }
        // Lines are replaced or added, never taken away: one that is kept stands further down, one that is not was replaced.
        const bool replaced = i < old_lines.size() && std::find(new_lines.begin(), new_lines.end(), old_lines[i]) == new_lines.end();
        if (replaced) text += "- " + old_lines[i++] + "\n";
        text += "+ " + line + "\n";
    }
    return text;
}

}  // namespace cairn
