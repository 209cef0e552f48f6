// Replacing, the leader's side: the storage of one part fails while the others go on. What was written to it counts no more, and the part's first leader writes all of it again into
// another file, on another target, beside what it has to do otherwise. The coordinator decides (coordinator/replacer.cpp tells how).
#include <algorithm>

#include "engine/leader/check.hpp"
#include "engine/leader/leader.hpp"

namespace cairn::engine {

namespace {
// What failed here, until the coordinator has said what comes in its place.
bool is_to_be_told(const PartState& part) { return part.dropped && !part.why.ok() && !part.settled; }
}  // namespace

bool Leader::has_untold_failure(const Attempt& attempt) {
    return std::any_of(attempt.parts.begin(), attempt.parts.end(), [](const auto& part) { return is_to_be_told(*part) && !part->why_told; });
}

void Leader::tell_failures(Attempt& attempt) {
    for (const auto& part : attempt.parts) {
        if (!is_to_be_told(*part)) continue;
        part->why_told = true;
        send_to_coordinator(*attempt.flight, message::PartFailed{attempt.lead.attempt_id, part->plan.part, part->why.code(), part->why.text()});
    }
}

// It comes again until Progress tells of it. A part that is durable here has all its leaders' shares, so none of them can have failed.
void Leader::on_replace(Flight& flight, message::Replace replace) {
    LeaderSide& own = side(flight);
    if (!own.leads(replace.attempt_id) || own.leading->over() || own.leading->reported) return;
    Attempt& attempt = *own.leading;
    PartState* const part = attempt.part(replace.part);
    if (!part || part->durable) return;
    if (!part->dropped) attempt.drop(*part);
    if (!part->first) part->settled = true;
    if (part->settled || replace.with.empty()) return tell_progress(attempt);
    if (const Status can = check_replacement(*flight.job, replace, {attempt.lead.block_bytes, attempt.lead.pack_bytes}, attempt.images); !can.ok()) return attempt.fail(can);
    for (const message::NodeAddress& entry : replace.addresses) attempt.addresses.emplace(entry.node, entry.address);
    attempt.replacements.push_back(std::move(replace.with.front()));
    attempt.parts.push_back(std::make_unique<PartState>(world, attempt.replacements.back(), flight.job->self));
    for (const NodeSources& node : attempt.parts.back()->share.nodes)
        for (const Source& source : node.sources) flight.state.node_expected_bytes += source.length;
    begin_part(attempt, attempt.parts.size() - 1);
    part->settled = true;
    attempt.idle_told = false;
    attempt.idle_parts_told = attempt.idle_parts();
    attempt.work.notify_all();
    tell_progress(attempt);
}

}  // namespace cairn::engine
