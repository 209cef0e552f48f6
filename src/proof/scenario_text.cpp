// A scenario as its line of text, and back.
#include <algorithm>
#include <charconv>
#include <sstream>

#include "proof/scenario.hpp"

namespace cairn::testing {

namespace {

std::string list_text(const std::vector<std::uint64_t>& values) {
    std::string text;
    for (const std::uint64_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
    return text;
}

Result<std::uint64_t> parse_number(std::string_view text, const std::string& key, std::uint64_t least, std::uint64_t most) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
        return invalid_argument(key + ": '" + std::string(text) + "' is not a number from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> pieces;
    std::istringstream in(text);
    for (std::string piece; std::getline(in, piece, at);) pieces.push_back(piece);
    return pieces;
}

Result<std::vector<std::uint64_t>> parse_list(const std::string& text, const std::string& key, std::uint64_t least, std::uint64_t most) {
    std::vector<std::uint64_t> values;
    for (const std::string& piece : split(text, ',')) {
        Result<std::uint64_t> value = parse_number(piece, key, least, most);
        if (!value.ok()) return std::move(value).status();
        values.push_back(*value);
    }
    return values;
}

Result<std::vector<Step>> parse_steps(const std::string& text) {
    std::vector<Step> steps;
    for (const std::string& piece : split(text, ',')) {
        const std::size_t colon = piece.find(':');
        const auto name = std::find(happening_names.begin(), happening_names.end(), piece.substr(0, colon));
        if (name == happening_names.end() || colon == std::string::npos) return invalid_argument("steps: '" + piece + "' is none (as in capture:5)");
        Result<std::uint64_t> seed = parse_number(std::string_view(piece).substr(colon + 1), "steps", 0, UINT64_MAX);
        if (!seed.ok()) return std::move(seed).status();
        steps.push_back({static_cast<Happening>(name - happening_names.begin()), *seed});
    }
    return steps;
}

Status set(Scenario& scenario, const std::string& key, const std::string& value) {
    for (const ScenarioNumber& number : scenario_numbers()) {
        if (key != number.name) continue;
        TRY_ASSIGN(scenario.*number.value, parse_number(value, key, number.least, number.most));
        return {};
    }
    const auto& classes = fault_classes();
    scenario.faults.resize(classes.size());
    for (std::size_t i = 0; i < classes.size(); ++i) {
        if (key != classes[i].name) continue;
        TRY_ASSIGN(scenario.faults[i], parse_number(value, key, 0, 1'000'000));
        return {};
    }
    if (key == "steps") {
        TRY_ASSIGN(scenario.steps, parse_steps(value));
    } else if (key == "ranks") {
        TRY_ASSIGN(scenario.ranks_per_node, parse_list(value, key, 0, 1024));
    } else if (key == "targets") {
        TRY_ASSIGN(scenario.target_bytes_s, parse_list(value, key, 1, UINT64_MAX));
    } else {
        return invalid_argument("a scenario has no '" + key + "'");
    }
    return {};
}

}  // namespace

std::string to_text(const Scenario& scenario) {
    const Scenario simple;
    std::string text;
    const auto add = [&](const std::string& key, const std::string& value) { text += (text.empty() ? "" : " ") + key + "=" + value; };
    for (const ScenarioNumber& number : scenario_numbers())
        if (number.value == &Scenario::seed || scenario.*number.value != simple.*number.value) add(number.name, std::to_string(scenario.*number.value));
    add("ranks", list_text(scenario.ranks_per_node));
    if (!scenario.target_bytes_s.empty()) add("targets", list_text(scenario.target_bytes_s));
    for (std::size_t i = 0; i < scenario.faults.size(); ++i)
        if (scenario.faults[i] != 0) add(fault_classes()[i].name, std::to_string(scenario.faults[i]));
    std::string steps;
    for (const Step& step : scenario.steps)
        steps += (steps.empty() ? "" : ",") + std::string(happening_names[static_cast<std::size_t>(step.what)]) + ":" + std::to_string(step.seed);
    if (!steps.empty()) add("steps", steps);
    return text;
}

Result<Scenario> parse_scenario(const std::string& text) {
    Scenario scenario;
    scenario.faults.resize(fault_classes().size());
    for (const std::string& piece : split(text, ' ')) {
        if (piece.empty()) continue;
        const std::size_t equals = piece.find('=');
        if (equals == std::string::npos) return invalid_argument("'" + piece + "' is not key=value");
        TRY(set(scenario, piece.substr(0, equals), piece.substr(equals + 1)));
    }
    if (scenario.ranks_per_node.empty() || scenario.ranks_per_node.front() == 0) return invalid_argument("ranks: the first node has at least one");
    if (scenario.files > scenario.ranks()) return invalid_argument("files: more than there are ranks");
    if (scenario.buffer_bytes % scenario.block_bytes != 0 || scenario.block_bytes % 4096 != 0)
        return invalid_argument("buffer is a multiple of block, block of 4096");
    return scenario;
}

}  // namespace cairn::testing
