#include "proof/steered.hpp"

#include <algorithm>
#include <fstream>

namespace cairn::testing {

namespace {

Result<Steered> parse_line(std::size_t line, const std::string& text) {
    const std::size_t space = text.find(' ');
    const std::string name = text.substr(0, space);
    const auto found = std::find_if(situations.begin(), situations.end(), [&](const Situation& each) { return each.name == name; });
    if (found == situations.end()) return invalid_argument("there is no situation '" + name + "' (situations.hpp)");
    if (found->by != ReachedBy::steered) return invalid_argument("random seeds reach '" + name + "'");
    Result<Scenario> scenario = parse_scenario(space == std::string::npos ? "" : text.substr(space + 1));
    if (!scenario.ok()) return std::move(scenario).status();
    return Steered{line, static_cast<Saw>(found - situations.begin()), std::move(scenario).value()};
}

}  // namespace

Result<std::vector<Steered>> read_steered(const std::string& path) {
    std::ifstream in(path);
    if (!in) return not_found(path + ": can not be read");
    std::vector<Steered> all;
    SawSet led_to;
    std::string text;
    for (std::size_t line = 1; std::getline(in, text); ++line) {
        if (text.empty() || text.front() == '#') continue;
        Result<Steered> steered = parse_line(line, text);
        if (!steered.ok()) return std::move(steered).status().within(path + " line " + std::to_string(line));
        led_to.set(static_cast<std::size_t>(steered->situation));
        all.push_back(std::move(steered).value());
    }
    if (in.bad()) return Status(Code::io_error, path + ": can not be read");
    for (std::size_t i = 0; i < situations.size(); ++i)
        if (situations[i].by == ReachedBy::steered && !led_to.test(i))
            return invalid_argument(path + ": no line leads to " + situations[i].name + " (" + situations[i].text + ")");
    return all;
}

}  // namespace cairn::testing
