#include "engine/coordinator/target_maps.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "format/names.hpp"

namespace cairn::engine {

namespace {
constexpr std::uint64_t text_bytes_max = 64ull << 20;  // of a map of a million nodes
constexpr double worth_it = 0.98;                      // of what the fullest target gets by count: less than that, and the map is made anew

// None is there, or one of another number of nodes.
bool is_ours_to_write(const Result<Bytes>& text, std::uint32_t nodes) {
    if (!text.ok()) return text.code() == Code::not_found;
    const Result<TargetMap> map = parse_target_map(as_text(*text));
    return map.ok() && map->of_node.size() != nodes;
}

// What each node with ranks stored, by its place among them.
std::vector<std::uint64_t> stored_bytes(const Job& job, const Contest& contest) {
    std::vector<std::size_t> places;
    std::size_t with_ranks = 0;
    for (NodeIndex node = 0; node < job.nodes(); ++node) places.push_back(job.has_ranks(node) ? with_ranks++ : 0);
    std::vector<std::uint64_t> bytes(with_ranks);
    const std::vector<const PartInfo*> reported = reported_parts(contest, job);
    for (std::size_t part = 0; part < reported.size(); ++part)
        if (reported[part]) bytes[places[owner_of(contest.plan[part])]] += reported[part]->bytes;
    return bytes;
}
}  // namespace

TargetMaps::TargetMaps(Common& c) : CoordinatorRole(c) {}

Task<void> TargetMaps::learn(JobPtr job) {
    Experience& known = experience(*job);
    if (!has_owners(job->roster->layout) || known.target_map) co_return;
    const std::unique_ptr<StorageDriver> driver = common.storage_driver(*job);
    const std::vector<std::string> targets = driver->targets();
    if (targets.empty()) co_return;
    const std::string path = layout.target_map(job->roster->name);
    const Result<Bytes> text = co_await read_file(world.storage, path, text_bytes_max, world.clock.in(settings.io_wait));
    known.target_map = usable(*job, text, targets);
    // One that a person wrote, and that can not be used, is not written over.
    known.keeps_target_map = known.target_map || !is_ours_to_write(text, job->nodes_with_ranks());
    if (!known.target_map) known.target_map = map_by_count(job->nodes_with_ranks(), targets);
}

// The file's, as far as it can be used.
std::optional<TargetMap> TargetMaps::usable(const Job& job, const Result<Bytes>& text, const std::vector<std::string>& targets) const {
    const std::string path = layout.target_map(job.roster->name);
    if (text.code() == Code::not_found) return std::nullopt;
    Result<TargetMap> map = text.ok() ? parse_target_map(as_text(*text)) : text.status();
    const std::uint32_t nodes = job.nodes_with_ranks();
    if (!map.ok()) {
        log_warning("targets-unread", {{"file", path}, {"why", map.status().text()}, {"done", "nodes go round the storage targets by count, and the file is left as it is"}, {"do", "mend it, or remove it to have it made anew"}});
        return std::nullopt;
    }
    if (map->of_node.size() != nodes) {
        log_info("targets-anew", {{"file", path}, {"why", "it is of " + std::to_string(map->of_node.size()) + " nodes, and this job has " + std::to_string(nodes)}});
        return std::nullopt;
    }
    for (std::size_t node = 0; node < nodes; ++node)
        if (std::find(targets.begin(), targets.end(), map->of_node[node]) == targets.end()) {
            log_warning("target-unknown", {{"file", path}, {"node", node}, {"target", map->of_node[node]}, {"there are", names_text(targets)},
                                           {"done", "nodes of targets that are not there go round the others"}});
            break;
        }
    return std::move(map).value();
}

void TargetMaps::keep(Flight& flight) {
    Job& job = *flight.job;
    Experience& known = experience(job);
    if (!known.target_map || known.keeps_target_map) return;
    known.keeps_target_map = true;
    const std::unique_ptr<StorageDriver> driver = common.storage_driver(job);
    std::vector<std::string> targets = driver->targets();
    std::erase_if(targets, [&](const std::string& target) { return is_avoided(job, target); });
    const std::vector<std::uint64_t> bytes = stored_bytes(job, *side(flight).contest);
    if (!targets.empty()) {
        TargetMap by_bytes = map_by_bytes(bytes, targets);
        const auto by_count = static_cast<double>(fullest_bytes(*known.target_map, bytes));
        if (static_cast<double>(fullest_bytes(by_bytes, bytes)) < worth_it * by_count) known.target_map = std::move(by_bytes);
    }
    gate.spawn(write(job.roster->name, target_map_text(job.roster->name, *known.target_map)));
}

Task<void> TargetMaps::write(std::string series, std::string text) const {
    const std::string path = layout.target_map(series);
    const std::string written = layout.lineage(series) + "/" + temporary_file_name(world.random.id());  // where `cairn gc` looks for what was left unfinished
    Bytes bytes = to_bytes(text);
    Status kept = co_await write_file(world.storage, written, std::move(bytes), 0644, world.clock.in(settings.io_wait));
    if (kept.ok()) kept = co_await world.storage.replace(written, path, world.clock.in(settings.io_wait));
    if (kept.ok()) co_return;
    log_warning("targets-not-kept", {{"file", path}, {"why", kept.text()}, {"lost", "the next job makes the map of nodes to storage targets anew"}});
    const Status ignored = co_await world.storage.remove(written, world.clock.in(settings.io_wait));
    (void)ignored;
}

}  // namespace cairn::engine
