#include "storage/target_map.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

namespace cairn {

namespace {
constexpr std::string_view made_words[] = {"made by count", "made by stored bytes"};
}

TargetMap map_by_count(std::size_t nodes, const std::vector<std::string>& targets) {
    TargetMap map;
    for (std::size_t node = 0; node < nodes; ++node) map.of_node.push_back(targets[node % targets.size()]);
    return map;
}

TargetMap map_by_bytes(const std::vector<std::uint64_t>& node_bytes, const std::vector<std::string>& targets) {
    std::vector<std::size_t> largest_first(node_bytes.size());
    std::iota(largest_first.begin(), largest_first.end(), std::size_t{0});
    std::stable_sort(largest_first.begin(), largest_first.end(), [&](std::size_t a, std::size_t b) { return node_bytes[a] > node_bytes[b]; });
    TargetMap map;
    map.made_by = TargetMap::MadeBy::stored_bytes;
    map.of_node.resize(node_bytes.size());
    std::vector<std::uint64_t> held(targets.size());
    for (const std::size_t node : largest_first) {
        const auto least = std::min_element(held.begin(), held.end()) - held.begin();
        held[static_cast<std::size_t>(least)] += node_bytes[node];
        map.of_node[node] = targets[static_cast<std::size_t>(least)];
    }
    return map;
}

std::uint64_t fullest_bytes(const TargetMap& map, const std::vector<std::uint64_t>& node_bytes) {
    std::map<std::string_view, std::uint64_t> held;
    std::uint64_t fullest = 0;
    for (std::size_t node = 0; node < map.of_node.size() && node < node_bytes.size(); ++node) fullest = std::max(fullest, held[map.of_node[node]] += node_bytes[node]);
    return fullest;
}

std::string target_map_text(const std::string& series, const TargetMap& map) {
    std::string text = "# which storage target each node of \"" + series +
                       "\" writes to, by the node's place in the job\n"
                       "# change it while no job runs; without this file, or for another number of nodes, it is made anew\n";
    text.append(made_words[static_cast<std::size_t>(map.made_by)]).append("\n");
    for (std::size_t node = 0; node < map.of_node.size(); ++node) text += std::to_string(node) + " " + map.of_node[node] + "\n";
    return text;
}

Result<TargetMap> parse_target_map(std::string_view text) {
    TargetMap map;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
        const auto bad = [&](const std::string& what) { return invalid_argument("line " + std::to_string(number) + ": " + what); };
        if (line.empty() || line.front() == '#') continue;
        const auto made = std::find(std::begin(made_words), std::end(made_words), line);
        if (made != std::end(made_words)) {
            map.made_by = static_cast<TargetMap::MadeBy>(made - std::begin(made_words));
            continue;
        }
        std::size_t node = 0;
        const auto read = std::from_chars(line.data(), line.data() + line.size(), node);
        if (read.ec != std::errc() || read.ptr == line.data() + line.size() || *read.ptr != ' ') return bad("not a node's number and the name of a storage target");
        if (node != map.of_node.size()) return bad("node " + std::to_string(node) + " where node " + std::to_string(map.of_node.size()) + " should stand");
        map.of_node.emplace_back(line.substr(static_cast<std::size_t>(read.ptr - line.data()) + 1));
    }
    return map;
}

std::vector<std::string> usable_map(const TargetMap& map, const std::vector<std::string>& usable) {
    if (usable.empty()) return {};
    std::vector<std::string> targets = map.of_node;
    for (std::size_t node = 0; node < targets.size(); ++node)
        if (std::find(usable.begin(), usable.end(), targets[node]) == usable.end()) targets[node] = usable[node % usable.size()];
    return targets;
}

}  // namespace cairn
