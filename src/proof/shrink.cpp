#include "proof/shrink.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace cairn::testing {

std::string failure_class(const std::string& failure) {
    std::string kind;
    for (const char c : failure.substr(0, failure.find(':')))
        if (!std::isdigit(static_cast<unsigned char>(c))) kind += c;
    return kind;
}

namespace {

constexpr int seeds_each = 3;  // of the simulation, for each smaller scenario

void add(std::vector<Scenario>& found, Scenario smaller, const Scenario& than) {
    smaller.files = std::min(smaller.files, std::max<std::uint64_t>(1, smaller.ranks()));
    smaller.gone = std::min<std::uint64_t>(smaller.gone, smaller.target_bytes_s.size());
    const bool whole = !smaller.ranks_per_node.empty() && smaller.ranks_per_node.front() > 0 && smaller.buffer_bytes % smaller.block_bytes == 0;
    if (whole && !(smaller == than)) found.push_back(std::move(smaller));
}

// Without runs of a list's elements: half of it, a quarter, ... one.
template <class List>
void add_shorter(std::vector<Scenario>& found, const Scenario& scenario, List Scenario::*list) {
    const std::size_t size = (scenario.*list).size();
    for (std::size_t length = size; length > 0; length /= 2)
        for (std::size_t at = 0; at < size; at += length) {
            Scenario less = scenario;
            const auto from = (less.*list).begin() + static_cast<std::ptrdiff_t>(at);
            (less.*list).erase(from, from + static_cast<std::ptrdiff_t>(std::min(length, size - at)));
            add(found, std::move(less), scenario);
        }
}

void add_fewer_faults(std::vector<Scenario>& found, const Scenario& scenario) {
    Scenario none = scenario;
    std::fill(none.faults.begin(), none.faults.end(), 0);
    add(found, std::move(none), scenario);
    for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
        Scenario without = scenario;
        without.faults[i] = 0;
        add(found, std::move(without), scenario);
    }
}

void add_simpler_numbers(std::vector<Scenario>& found, const Scenario& scenario) {
    for (const ScenarioNumber& number : scenario_numbers()) {
        const std::uint64_t value = scenario.*number.value;
        if (number.simplest == UINT64_MAX || value == number.simplest) continue;
        Scenario simple = scenario;
        simple.*number.value = number.simplest;
        add(found, std::move(simple), scenario);
        if (value < number.simplest) continue;
        Scenario half = scenario;
        half.*number.value = number.simplest + (value - number.simplest) / 2;
        if (number.value != &Scenario::block_bytes && number.value != &Scenario::buffer_bytes) add(found, std::move(half), scenario);
    }
}

void add_fewer_ranks(std::vector<Scenario>& found, const Scenario& scenario) {
    Scenario one_each = scenario;
    for (std::uint64_t& ranks : one_each.ranks_per_node) ranks = std::min<std::uint64_t>(ranks, 1);
    add(found, std::move(one_each), scenario);
    for (std::size_t node = 0; node < scenario.ranks_per_node.size(); ++node) {
        if (scenario.ranks_per_node[node] < 2) continue;
        Scenario less = scenario;
        --less.ranks_per_node[node];
        add(found, std::move(less), scenario);
    }
}

}  // namespace

std::vector<Scenario> smaller(const Scenario& scenario) {
    std::vector<Scenario> found;
    add_shorter(found, scenario, &Scenario::steps);
    add_fewer_faults(found, scenario);
    add_shorter(found, scenario, &Scenario::ranks_per_node);
    add_fewer_ranks(found, scenario);
    add_shorter(found, scenario, &Scenario::target_bytes_s);
    add_simpler_numbers(found, scenario);
    return found;
}

Shrunk shrink(Scenario scenario, std::string failure, const std::function<std::optional<std::string>(const Scenario&)>& failure_of,
              const std::function<bool()>& go_on) {
    Shrunk smallest{std::move(scenario), std::move(failure), 0, false};
    const std::string kind = failure_class(smallest.failure);
    std::set<std::string> tried;
    const auto find_smaller = [&] {
        for (Scenario& less : smaller(smallest.scenario)) {
            const std::uint64_t seed = less.seed;
            for (int i = 0; i < seeds_each; ++i) {
                less.seed = seed + static_cast<std::uint64_t>(i);
                if (!tried.insert(to_text(less)).second) continue;
                if (!go_on()) return false;
                ++smallest.tries;
                std::optional<std::string> failed = failure_of(less);
                if (!failed || failure_class(*failed) != kind) continue;
                smallest.scenario = std::move(less);
                smallest.failure = std::move(*failed);
                return true;
            }
        }
        smallest.done = true;
        return false;
    };
    while (find_smaller()) {}
    return smallest;
}

}  // namespace cairn::testing
