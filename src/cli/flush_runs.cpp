#include "cli/flush_runs.hpp"

#include <algorithm>
#include <memory>

#include "engine/leader/work_list.hpp"
#include "model/run_length.hpp"

namespace cairn::cli {

namespace {

constexpr std::uint64_t pack_bytes_most = 1 << 20;  // the planner's

struct State {
    engine::WorkList work;
    ChunkLimits limits;
    std::uint64_t writer_bytes = UINT64_MAX;  // that one writer begins at a time, by the pace of storage
};

State begin(const std::vector<std::uint64_t>& images, const RunSettings& settings) {
    State state;
    const std::uint64_t buffer = settings.buffer_bytes / settings.block_bytes * settings.block_bytes;
    state.limits = {settings.block_bytes, chunk_bytes(settings.buffer_bytes, settings.block_bytes, settings.share_bytes, settings.writers), std::max(settings.block_bytes, std::min(buffer, tried_run_bytes_max)), 0};
    if (settings.storage_bytes_per_s > 0) state.writer_bytes = static_cast<std::uint64_t>(settings.storage_bytes_per_s / 2 / settings.writers);  // what is begun is what half a second writes
    Share share;
    NodeSources own;
    for (std::size_t i = 0; i < images.size(); ++i) own.sources.push_back({static_cast<Rank>(i), 0, images[i]});
    share.nodes.push_back(std::move(own));
    engine::WorkPolicy policy;
    policy.writers = settings.writers;
    policy.block_bytes = settings.block_bytes;
    policy.chunk_bytes_max = state.limits.chunk_bytes_max;
    policy.pack_bytes = std::min(pack_bytes_most, settings.buffer_bytes);
    policy.merge = settings.merge;
    state.work = engine::WorkList(share, 0, policy);
    return state;
}

Pack take(State& state, const CodecTrial& so_far) {
    const double encoded = so_far.stored_bytes - (so_far.raw_bytes - so_far.decoded_bytes);  // of the runs that are
    const std::uint64_t most = next_chunk_bytes(state.limits, state.writer_bytes, static_cast<std::uint64_t>(so_far.decoded_bytes), static_cast<std::uint64_t>(encoded));
    std::optional<engine::Piece> piece;
    if (std::optional<engine::WorkList::Remote> gathered = state.work.take_remote(most)) piece = std::move(gathered->piece);
    else piece = state.work.take_local(engine::any_writer, most);
    if (!piece) return {};
    return piece->packed.empty() ? Pack{{piece->node, piece->source}} : std::move(piece->packed);
}

}  // namespace

RunSettings run_settings(const Settings::Flush& flush, std::uint64_t image_bytes, double storage_bytes_per_s) {
    return {flush.block_bytes, flush.buffer_bytes, flush.writers, image_bytes, storage_bytes_per_s, {}};
}

MergePolicy merge_policy(const RunSettings& settings, std::uint32_t ranks, std::uint64_t merge_bytes) {
    const std::uint64_t buffer = settings.buffer_bytes / settings.block_bytes * settings.block_bytes;
    return fitting(ranks, merge_bytes, std::min(buffer, merged_run_bytes_max), settings.block_bytes);
}

NextRun flush_runs(const std::vector<std::uint64_t>& images, const RunSettings& settings) {
    const auto state = std::make_shared<State>(begin(images, settings));
    return [state](const CodecTrial& so_far) { return take(*state, so_far); };
}

}  // namespace cairn::cli
