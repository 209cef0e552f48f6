#include "storage/expected_layout.hpp"

#include <algorithm>

#include "storage/placement.hpp"
#include "storage/target_map.hpp"

namespace cairn {

namespace {

std::uint32_t files_of(const LayoutQuestion& question) {
    if (question.layout == FileLayout::ranks) return question.ranks;
    return question.layout == FileLayout::nodes || question.files == 0 ? question.nodes : question.files;
}

std::string why(const LayoutQuestion& question) {
    if (question.layout == FileLayout::ranks) return "flush.layout = file-per-rank: each rank's image has a file, on the target of its node";
    if (question.layout == FileLayout::nodes) return "flush.layout = file-per-node: what a node holds has a file, on the target of the node";
    if (question.layout == FileLayout::tensors) return "flush.layout = safetensors: images lie whole in their files, so files differ as images do";
    return question.files == 0 ? "flush.files = 0: one for each node" : "flush.files = " + std::to_string(question.files);
}

Stripe stripe_of(const LayoutQuestion& question, std::uint32_t files) {
    return question.spans && !has_owners(question.layout) ? spread(files, question.targets, question.bytes / files) : Stripe{};
}

std::vector<std::uint64_t> bytes_on_targets(const LayoutQuestion& question, std::uint32_t files) {
    std::vector<std::uint64_t> bytes(question.targets);
    if (!has_owners(question.layout)) {
        const std::uint32_t stripes = std::max(1u, stripe_of(question, files).count);
        for (const PartShare& share : share_parts(question.bytes / question.block_bytes, files, question.targets, 0))
            for (const std::uint32_t target : stripe_targets(*share.target, stripes, question.targets)) bytes[target] += share.blocks * question.block_bytes / stripes;
        return bytes;
    }
    for (std::uint32_t node = 0; node < question.nodes; ++node) {
        const std::uint64_t ranks = std::uint64_t{question.ranks} * (node + 1) / question.nodes - std::uint64_t{question.ranks} * node / question.nodes;
        bytes[node % question.targets] += question.bytes / question.ranks * ranks;  // map_by_count
    }
    return bytes;
}

void hint(const LayoutQuestion& question, ExpectedLayout& expected) {
    const std::string targets = std::to_string(question.targets);
    if (!has_owners(question.layout) && expected.files < question.targets && expected.targets_filled < question.targets) {
        if (question.ranks >= question.targets) expected.hints.push_back("flush.files = " + targets + " fills all targets");
        else expected.hints.push_back("no number of files fills all targets: a file lies on one of them, and there are at most as many files as ranks, " + std::to_string(question.ranks));
    }
    if (has_owners(question.layout) && expected.fullest_bytes > expected.mean_bytes + expected.mean_bytes / 50)
        expected.hints.push_back("flush.layout = aggregated lays the same bytes on every target, however many nodes there are; a multiple of " + targets + " nodes would, too");
}

}  // namespace

ExpectedLayout expected_layout(const LayoutQuestion& question) {
    ExpectedLayout expected;
    expected.files = files_of(question);
    expected.why = why(question);
    if (question.targets == 0) return expected;
    expected.stripes = std::max(1u, stripe_of(question, expected.files).count);
    for (const std::uint64_t bytes : bytes_on_targets(question, expected.files)) {
        expected.targets_filled += bytes > 0;
        expected.fullest_bytes = std::max(expected.fullest_bytes, bytes);
    }
    expected.mean_bytes = question.bytes / question.targets;
    hint(question, expected);
    return expected;
}

}  // namespace cairn
