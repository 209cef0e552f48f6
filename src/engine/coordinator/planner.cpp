#include "engine/coordinator/planner.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "base/units.hpp"
#include "format/check.hpp"
#include "format/limits.hpp"
#include "storage/placement.hpp"

namespace cairn::engine {

namespace {
constexpr std::uint64_t pack_bytes_most = 1 << 20;  // a write that storage takes well
constexpr std::size_t ahead_most = 4;               // versions of a job that are planned before they are sealed

std::uint64_t sum_of(const std::vector<ImageInfo>& images) {
    std::uint64_t sum = 0;
    for (const ImageInfo& image : images) sum = std::min(bytes_max + 1, sum + std::min(image.bytes, bytes_max + 1));  // more than there can be is enough to know
    return sum;
}

std::uint64_t sum_of(const std::vector<NodeImages>& nodes) {
    std::uint64_t bytes = 0;
    for (const NodeImages& node : nodes) bytes += node_bytes(node);
    return bytes;
}
}  // namespace

Planner::Planner(Common& c) : CoordinatorRole(c), free_space_(c) {}

Result<std::vector<NodeImages>> Planner::plan(Flight& flight, Contest& contest) {
    Job& job = *flight.job;
    TRY_ASSIGN(std::vector<NodeImages> nodes, all_images(flight, contest.block_bytes));
    const PlanInput input = input_of(job, nodes, contest.block_bytes);
    contest.keep_own = input.options.keep_own;
    contest.pack_bytes = input.options.pack_bytes;
    if (settings.placement == Placement::append && job.roster->layout != FileLayout::tensors) {
        if (settings.codec != Codec::none) contest.codec = codec_name(settings.codec);
        if (!settings.codecs.empty()) {
            const CodecChoice& choice = codec_choice(job);
            contest.codec = choice.next();
            contest.keys = choice.efforts();
            contest.trial = choice.trial();
        }
    }
    contest.base = base_for(job, flight.key.version, contest.codec);
    contest.encode_at_follower = !contest.codec.empty() && (settings.encode_at == EncodeAt::follower || contest.base != 0);  // a base is where the image is
    contest.equal_pages = settings.equal_pages && settings.placement == Placement::append && contest.base == 0 && (job.roster->layout == FileLayout::parts || job.roster->layout == FileLayout::nodes);
    choose_merging(job, contest);
    Ahead ahead = take_ahead(experience(job), flight.key.version);
    const bool holds = ahead.input == input;
    counters.planned_by_key += !contest.keys.empty();
    counters.planned_ahead += holds;
    counters.planned_in_vain += ahead.input && !holds;
    contest.plan = holds ? std::move(ahead.plan) : plan_flush(input);
    contest.node_targets = input.node_targets;
    contest.may_replace = std::count_if(input.targets.begin(), input.targets.end(), [&](const std::string& target) { return !is_avoided(job, target); }) > 1;
    tell_unfilled(job, input);
    experience(job).free_bytes_until = 0;
    ++experience(job).placement_turn;
    Status sizes = check_sizes(contest, nodes, job.roster->layout == FileLayout::tensors);
    if (!sizes.ok() && contest.merge.ranks > 1) {  // what is merged has more pieces: a footer that has no room for them may have room for others
        tell_unmerged(job, sizes);
        contest.merge = {};
        sizes = check_sizes(contest, nodes, job.roster->layout == FileLayout::tensors);
    }
    if (!sizes.ok() && contest.equal_pages) {  // the same
        contest.equal_pages = false;
        sizes = check_sizes(contest, nodes, false);
    }
    TRY(sizes);
    contest.addresses = job.addresses;
    std::map<std::string, std::uint32_t> targets_seen;
    for (const PartPlan& part : contest.plan) {
        contest.part_space_bytes.push_back(part.range_bytes());
        contest.targets.push_back(targets_seen.emplace(part.target, targets_seen.size()).first->second);
    }
    make_leads(contest, job, nodes);
    return nodes;
}

// What has a base is encoded where the image is, alone; what is equal in images is stored once, and no codec need see it side by side; and a file of one image has nothing to merge.
void Planner::choose_merging(const Job& job, Contest& contest) {
    if (contest.base != 0 || contest.equal_pages || job.roster->layout == FileLayout::ranks) return;
    const bool is_tried = settings.merge_ranks == 0;
    const MergePolicy merged = fitting(is_tried ? merge_ranks_chosen : settings.merge_ranks, settings.merge_bytes, std::min(settings.buffer_bytes, merged_run_bytes_max), contest.block_bytes);
    const MergeChoice& choice = merge_choices_[kind(job)];
    if (!contest.codec.empty() && (!is_tried || choice.merges())) contest.merge = merged;
    const bool has_codec = !contest.codec.empty() || !contest.trial.empty();
    if (is_tried && has_codec && choice.tries()) contest.trial_merge = merged;
}

// Once a job: it will be so with each of its versions.
void Planner::tell_unmerged(Job& job, const Status& why) {
    if (std::exchange(experience(job).has_told_unmerged, true)) return;
    log_warning("not-merged", {{"name", job.roster->name}, {"why", why.text()}, {"do", "ask for more files (flush.files) or longer turns (flush.merge_bytes)"}});
}

// Once a job. Where a file lies on one target.
void Planner::tell_unfilled(Job& job, const PlanInput& input) {
    const std::size_t targets = input.targets.size(), files = input.options.files;
    if (has_owners(input.options.layout) || files >= targets || common.storage_driver(job)->spans_targets() || std::exchange(experience(job).has_told_unfilled, true)) return;
    const std::size_t most = std::min<std::size_t>(targets, job.roster->ranks);
    log_info("targets-unfilled", {{"name", job.roster->name}, {"files", files}, {"targets", targets}, {"lost", "a version is written to some of the storage targets only"},
                                  {"do", most > files ? "flush.files = " + std::to_string(most) + " fills " + (most == targets ? "all of them" : "more of them") : "nothing: there are as many files as ranks"}});
}

// The images of all nodes, none of an I/O node; their block size in `block_bytes`.
Result<std::vector<NodeImages>> Planner::all_images(const Flight& flight, std::uint64_t& block_bytes) const {
    std::vector<NodeImages> nodes;
    for (NodeIndex node = 0; node < flight.job->nodes(); ++node) {
        nodes.push_back({node, {}});
        const auto found = side(flight).sealed.find(node);
        if (found == side(flight).sealed.end()) continue;  // an I/O node
        const message::Sealed& sealed = found->second;
        nodes.back().images = sealed.images;
        if (block_bytes == 0) block_bytes = sealed.block_bytes;
        if (sealed.block_bytes != block_bytes)
            return invalid_argument(version_text(flight.key) + ": " + flight.job->node_name(node) + " captured with flush.block_bytes = " +
                                    std::to_string(sealed.block_bytes) + ", " + flight.job->node_name(flight.job->coordinator()) + " with " + std::to_string(block_bytes) +
                                    "; give all nodes the same");
    }
    return nodes;
}

// False when it lies where the file system put it.
bool Planner::avoid_target_of(Flight& flight, std::uint32_t part, const std::string& why) {
    if (part >= side(flight).contest->plan.size()) return false;
    const std::string& target = side(flight).contest->plan[part].target;
    if (!target.empty()) avoid(*flight.job, target, why);
    return !target.empty();
}

bool Planner::note_begun(Job& job, Version version, NodeIndex from, message::Begun begun) {
    Experience& known = experience(job);
    if (!job.coordinates() || !job.has_ranks(from) || version <= job.committed) return false;
    if (!check::block_bytes_valid(begun.block_bytes) || sum_of(begun.images) > bytes_max) return false;  // nobody's word is believed in what can not be
    Ahead& ahead = known.ahead[version];
    ahead.begun[from] = std::move(begun);
    ahead.input.reset();
    const bool all = ahead.begun.size() == job.nodes_with_ranks();
    if (known.ahead.size() <= ahead_most) return all && !known.turn.empty();
    const auto last = std::prev(known.ahead.end());  // the one before it is due sooner
    const bool is_this = last->first == version;
    known.ahead.erase(last);
    return all && !is_this && !known.turn.empty();
}

// Another version's flush may begin meanwhile: it uses what was looked at.
Task<void> Planner::plan_ahead(JobPtr job, Version version) {
    const TraceSpan span(world.clock, "coordinator", "plan ahead");
    Experience& known = experience(*job);
    const std::uint64_t turn = known.placement_turn;
    const std::function<bool()> is_unused = [&known, turn] { return !known.turn.empty() && known.placement_turn == turn; };  // else it would stand for what another attempt has looked at
    co_await free_space_.look(*job, false, is_unused);
    const bool was_used = !is_unused();
    if (was_used) known.free_bytes_until = 0;
    const auto found = known.ahead.find(version);
    if (found == known.ahead.end() || was_used) co_return;
    Ahead& ahead = found->second;
    const std::uint64_t block_bytes = ahead.begun.begin()->second.block_bytes;
    std::vector<NodeImages> nodes;
    for (NodeIndex node = 0; node < job->nodes(); ++node) {
        nodes.push_back({node, {}});
        const auto begun = ahead.begun.find(node);
        if (begun == ahead.begun.end()) continue;  // an I/O node
        if (begun->second.block_bytes != block_bytes) co_return;  // said when it is sealed
        nodes.back().images = begun->second.images;
    }
    ahead.input = input_of(*job, nodes, block_bytes);
    ahead.plan = plan_flush(*ahead.input);
}

// Of this version; those of older ones are of no use any more.
Ahead Planner::take_ahead(Experience& experience, Version version) {
    Ahead taken;
    const auto found = experience.ahead.find(version);
    if (found != experience.ahead.end()) taken = std::move(found->second);
    experience.ahead.erase(experience.ahead.begin(), experience.ahead.upper_bound(version));
    return taken;
}

// As many leaders as were best lately.
PlanInput Planner::input_of(Job& job, const std::vector<NodeImages>& nodes, std::uint64_t block_bytes) {
    PlanInput input;
    for (const NodeImages& node : nodes) {
        input.nodes.push_back({node.node, {}});
        for (const ImageInfo& image : node.images) {
            ImageInfo size;
            size.rank = image.rank;
            size.bytes = image.bytes;
            input.nodes.back().images.push_back(std::move(size));
        }
    }
    PlanOptions& options = input.options;
    options.layout = job.roster->layout;
    options.files = job.roster->files;
    options.block_bytes = block_bytes;
    options.keep_own = options.layout == FileLayout::parts && settings.placement == Placement::append && leader_choice(job).keep_own();
    options.pack_bytes = settings.placement == Placement::append && options.layout != FileLayout::tensors ? std::min(pack_bytes_most, settings.buffer_bytes) : 0;
    for (const auto& [node, until] : experience(job).unfit)
        if (world.clock.now() < until) options.unfit.push_back(node);
    options.unfit.insert(options.unfit.end(), experience(job).absent.begin(), experience(job).absent.end());
    options.whole_parts = settings.placement != Placement::append;
    input.targets = free_space_.usable_targets(job, sum_of(nodes));
    input.turn = experience(job).placement_turn;
    if (has_owners(options.layout)) {  // who writes follows from who holds what
        const std::optional<TargetMap>& map = experience(job).target_map;
        if (map) input.node_targets = usable_map(*map, input.targets);
        return input;
    }
    if (options.layout == FileLayout::tensors) return input;
    options.leaders = settings.leaders != 0 ? settings.leaders : leader_choice(job).next(options.files, leaders_max(nodes, options.unfit));
    return input;
}

namespace {
// A file for each rank, or node, on the target of its node.
std::vector<PartPlan> plan_of_files(const PlanInput& input) {
    std::vector<PartPlan> plan = make_plan(input.nodes, input.options);
    if (input.node_targets.empty()) return plan;
    std::vector<std::size_t> places;  // of each node, among those with ranks
    std::size_t with_ranks = 0;
    for (const NodeImages& node : input.nodes) places.push_back(node.images.empty() ? 0 : with_ranks++);
    for (PartPlan& part : plan) part.target = input.node_targets[places[owner_of(part)]];
    return plan;
}
}  // namespace

// Groups, election and division (model/plan), and the same bytes on every target.
std::vector<PartPlan> Planner::plan_flush(const PlanInput& input) {
    PlanOptions options = input.options;
    const std::vector<std::string>& names = input.targets;
    if (has_owners(options.layout)) return plan_of_files(input);
    std::uint64_t blocks = 0;
    for (const NodeImages& node : input.nodes) blocks += node_blocks(node, options.block_bytes);
    const std::vector<PartShare> shares = share_parts(blocks, options.files, static_cast<std::uint32_t>(names.size()), input.turn);
    if (options.layout == FileLayout::parts)  // images are whole in the others
        for (const PartShare& share : shares) options.part_blocks.push_back(share.blocks);
    std::vector<PartPlan> plan = make_plan(input.nodes, options);
    for (PartPlan& part : plan)
        if (shares[part.part].target) part.target = names[*shares[part.part].target];
    for (PartPlan& part : plan)
        if (part.shares.size() > 1) part.sized_bytes = 2 * part.range_bytes();  // sparse, with room for work of other parts; cut at the end
    return plan;
}

// Its images are not to be had until it speaks up again. Without an I/O node all can go on.
void Planner::lose(Flight& flight, NodeIndex node) {
    Job& job = *flight.job;
    if (node >= job.nodes()) return;
    side(flight).lose(node);
    if (job.has_ranks(node)) return;
    experience(job).unfit[node] = world.clock.in(avoided_for);
    experience(job).absent.insert(node);
    side(flight).lost_io_node = true;
}

// What the next attempt does without, of all that failed so far: nodes that were lost, targets on which a part failed, leaders that failed by
// themselves. A leader is not to blame for its target.
void Planner::learn_from_failures(Flight& flight) {
    for (const auto& [node, track] : side(flight).contest->leaders) {
        if (!track.done || track.done->code == Code::ok) continue;
        const bool of_target = track.done->has_failed_part && avoid_target_of(flight, track.done->failed_part, track.done->text);
        if (track.done->has_lost) lose(flight, track.done->lost);
        else if (track.done->code != Code::superseded && !of_target) {
            experience(*flight.job).unfit[node] = world.clock.in(avoided_for);
            side(flight).lost_io_node |= !flight.job->has_ranks(node);
        }
    }
}

// One that gave way to the application says nothing about storage.
void Planner::learn_from_success(Flight& flight, const std::vector<NodeImages>& nodes, Nanos took, bool held_back) {
    std::uint64_t bytes = 0;
    for (const NodeImages& node : nodes) bytes += node_bytes(node);
    if (!held_back && flight.job->roster->layout == FileLayout::parts) {
        const double took_s = static_cast<double>(took) / second;
        leader_choice(*flight.job).record(static_cast<std::uint32_t>(side(flight).contest->leaders.size()), bytes, took_s);
    }
    if (settings.merge_ranks == 0) learn_of_merging(flight);  // sizes are what they are, however long it took
    if (!settings.codecs.empty()) {
        FlushMeasured flush = measured(flight, bytes, static_cast<double>(took) / second);
        flush.is_held_back = held_back;
        learn_of_codecs(*flight.job, flush);
    }
    learn_from_cards(flight);
}

// The version after so many that depend on one is whole again, so that what it takes to restore has a bound, and scratch holds no image for ever.
Version Planner::base_for(Job& job, Version version, const std::string& codec) const {
    const std::optional<Codec> known = codec_of(codec, "");
    if (!known || !takes_base(*known)) return 0;
    const Experience& past = experience(job);
    return past.base < version && past.since_base + 1 < settings.full_every ? past.base : 0;
}

void Planner::learn_of_base(Flight& flight) {
    const Contest& contest = *side(flight).contest;
    Experience& past = experience(*flight.job);
    const bool depends = std::any_of(contest.leaders.begin(), contest.leaders.end(), [](const auto& each) { return each.second.done->needs_base; });
    if (depends) {
        ++past.since_base;
    } else if (flight.key.version > past.base) {  // an older one may commit late: what daemons have heard of stays the base
        past.base = settings.full_every > 1 ? flight.key.version : 0;
        past.since_base = 0;
    }
}

CodecChoice& Planner::codec_choice(const Job& job) {
    std::vector<CodecCandidate> candidates;
    // What a key is worth as it is says nothing of what changed in it since a base.
    for (const Codec codec : settings.codecs) candidates.push_back({std::string(codec_name(codec)), settings.full_every > 1 ? std::nullopt : effort_of(codec)});
    return codec_choices_.try_emplace(kind(job), candidates, static_cast<double>(settings.codecs_soon) / second).first->second;
}

FlushMeasured Planner::measured(const Flight& flight, std::uint64_t raw_bytes, double took_s) const {
    const Contest& contest = *side(flight).contest;
    FlushMeasured flush{contest.codec, raw_bytes, 0, took_s, 0, {}};
    flush.efforts = contest.keys;
    bool all_tell = true;
    for (const auto& [node, track] : contest.leaders) {
        for (const PartInfo& part : track.done->parts) flush.stored_bytes += part.bytes;
        flush.raw_bytes -= std::min(flush.raw_bytes, track.done->equal_bytes);  // no codec made them shorter
        flush.storage_share = std::max(flush.storage_share, static_cast<double>(track.done->storage_busy_ns) / second / took_s);
        flush.encoders += track.done->encoders;
        all_tell &= track.done->encoders > 0;
        flush.keys.insert(flush.keys.end(), track.done->keys.begin(), track.done->keys.end());
        for (const message::CodecRate& rate : track.done->codecs) {
            CodecMeasured& codec = flush.codecs[rate.codec];
            codec.raw_bytes += static_cast<double>(rate.raw_bytes);
            codec.stored_bytes += static_cast<double>(rate.stored_bytes);
            codec.raw_bytes_per_s += static_cast<double>(rate.raw_bytes_per_s);
        }
    }
    if (!all_tell) flush.encoders = 0;  // some are older than this
    if (!contest.trial.empty()) {
        const auto has_told = [&](const auto& each) { return std::any_of(each.second.done->codecs.begin(), each.second.done->codecs.end(), [&](const message::CodecRate& rate) { return rate.codec == contest.trial; }); };
        const auto has_data = [&](const auto& each) { return flight.job->has_ranks(each.first); };
        const auto with_data = std::count_if(contest.leaders.begin(), contest.leaders.end(), has_data);
        if (with_data > 0) flush.told = static_cast<double>(std::count_if(contest.leaders.begin(), contest.leaders.end(), has_told)) / static_cast<double>(with_data);
    }
    const auto choice = merge_choices_.find(kind(*flight.job));
    if (settings.merge_ranks == 0 && choice != merge_choices_.end()) {
        if (contest.merge.ranks > 1) flush.shorter = choice->second.shorter();
        if (choice->second.merges()) flush.next_shorter = choice->second.shorter();
    }
    // Where each node encodes what it sends, those that do not lead encode as fast as those that do. So they would in a version that tries a codec.
    if (settings.encode_at == EncodeAt::follower && !contest.leaders.empty()) {
        const double more = std::max(1.0, static_cast<double>(flight.job->nodes_with_ranks()) / static_cast<double>(contest.leaders.size()));
        flush.encoders *= more;
        for (auto& [name, codec] : flush.codecs) codec.raw_bytes_per_s *= more;
    }
    return flush;
}

void Planner::learn_of_merging(const Flight& flight) {
    const Contest& contest = *side(flight).contest;
    MergeTried tried{contest.trial_merge.ranks > 1};
    for (const auto& [node, track] : contest.leaders)
        for (const message::CodecRate& rate : track.done->codecs) {
            tried.apart_bytes += static_cast<double>(rate.apart_bytes);
            tried.merged_bytes += static_cast<double>(rate.merged_bytes);
            tried.raw_bytes += static_cast<double>(rate.tried_bytes);
        }
    MergeChoice& choice = merge_choices_[kind(*flight.job)];
    const bool before = choice.merges();
    choice.record(tried);
    if (choice.merges() == before) return;
    if (!contest.codec.empty()) leader_choice(*flight.job).begin_anew();
    log_info("merging", {{"name", flight.job->roster->name}, {"merges", choice.merges()}, {"apart_by_merged", choice.shorter()}});
}

void Planner::tell_codec(const Job& job, const CodecChoice& choice) {
    std::array<std::size_t, efforts_count> keys = {};
    for (const KeyEffort& each : choice.efforts()) ++keys[static_cast<std::size_t>(each.effort)];
    log_info("codec", {{"name", job.roster->name}, {"codec", choice.next().empty() ? "none" : choice.next()}, {"keys_left", keys[static_cast<std::size_t>(Effort::none)]},
                       {"keys_fast", keys[static_cast<std::size_t>(Effort::fast)]}, {"keys_small", keys[static_cast<std::size_t>(Effort::small)]}});
}

// What numbers of leaders reached with one codec says nothing of them with another.
void Planner::learn_of_codecs(Job& job, const FlushMeasured& flush) {
    CodecChoice& choice = codec_choice(job);
    const std::string before = choice.next();
    const KeyEfforts efforts_before = choice.efforts();
    choice.record(flush);
    if (choice.next() != before || choice.efforts() != efforts_before) tell_codec(job, choice);
    const bool goes_by_key = settings.full_every == 1;  // codecs that do are nearly one
    if (choice.next() != before && (!goes_by_key || choice.next().empty() || before.empty())) leader_choice(job).begin_anew();
}

void Planner::learn_from_cards(const Flight& flight) {
    std::uint32_t full = 0, with_room = 0;
    for (const auto& [node, track] : side(flight).contest->leaders) {
        full += track.done->card == Card::full;
        with_room += track.done->card == Card::has_room;
    }
    leader_choice(*flight.job).record_cards(full, with_room);
}

}  // namespace cairn::engine
