// Each rule asks for what would spare a thing first, in the order in which a person would want to hear it.
#include "catalog/gc_rules.hpp"

#include <algorithm>

namespace cairn {

namespace {

using Act = GcAnswer::Act;

Fence fence_of(bool can_go) { return can_go ? Fence::lift : Fence::keep; }

// The head is there for sure, and not only a manifest of it that can not be read.
bool head_is_whole(const GcSeries& series) {
    if (!series.head) return false;
    return series.head_is_on_record || std::any_of(series.versions.begin(), series.versions.end(), [&](const GcVersion& version) {
               return version.key.incarnation == series.head && (version.is_committed || version.is_in_scratch);
           });
}

}  // namespace

bool fence_can_go(const GcSeries& series, const GcVersion& version, const GcJob& job, const std::vector<VersionKey>& gone) {
    if (!job.is_over || version.is_in_scratch || !series.head_is_certain) return false;
    if (!series.may_be_current(version)) return true;
    return std::any_of(series.versions.begin(), series.versions.end(), [&](const GcVersion& other) {
        return other.is_current && other.is_committed && other.key.version > version.key.version &&
               std::find(gone.begin(), gone.end(), other.key) == gone.end();
    });
}

bool is_superseded(const GcSeries& series, Id128 incarnation) {
    if (!series.head_is_certain || !series.head || series.head == incarnation) return false;
    return std::any_of(series.versions.begin(), series.versions.end(),
                       [&](const GcVersion& version) { return version.is_committed && version.key.incarnation == series.head; });
}

GcAnswer unless_needed(GcAnswer answer, const GcSeries& series, const VersionKey& key, const std::vector<VersionKey>& gone) {
    if (answer.act != Act::take) return answer;
    const Dependent* by = needed_by(series.dependents, key, gone);
    return by ? GcAnswer{Act::spare, answer.why + ", but " + needed_text(*by)} : answer;
}

GcAnswer judge_unfinished(const GcSeries& series, const GcVersion& version, const GcJob& job, bool unknown) {
    if (!version.is_old) return {Act::spare, "changed lately: it may be in flight"};
    const bool known = version.key.incarnation.low != 0;
    if (!known && !unknown)
        return {Act::spare, "nothing tells whose it is, so nobody can be kept from committing it; --unknown takes it"};
    if (job.is_served_here) return {Act::spare, "a daemon of its job runs on this host"};
    if (series.may_be_current(version) && !job.is_over)
        return {Act::spare, version.is_current ? "its job is on record and in the current lineage: it may be in flight"
                                               : "its job is on record, and may be in the current lineage, which can not be told"};
    if (!known) return {Act::take_unfenced, "of an unknown incarnation"};
    return {Act::take, "left behind by a job that is over or superseded", fence_of(fence_can_go(series, version, job, {}))};
}

GcAnswer judge_given_up(const GcSeries& series, const GcVersion& version, const GcJob& job, bool has_parts) {
    const Fence fence = fence_of(version.is_old && !job.is_served_here && fence_can_go(series, version, job, {}));
    if (!has_parts && fence == Fence::keep) return {};
    return {Act::take, has_parts ? "parts of a version that was given up or removed" : "tombstone of a job that is over", fence};
}

GcAnswer judge_other_lineage(const GcSeries& series, const GcVersion& version, const GcJob& job) {
    if (series.may_be_current(version)) return {Act::spare, "it may be in the current lineage, which can not be told: `cairn repair`"};
    if (head_is_whole(series)) return {Act::take, "of another lineage", fence_of(fence_can_go(series, version, job, {}))};
    return {Act::spare, "a manifest of the newest lineage can not be read, so that this one may be the current one: `cairn verify` names it"};
}

GcAnswer judge_beyond_retention(const GcSeries& series, const GcVersion& version, const GcJob& job) {
    return {Act::take, "beyond the retention rule", fence_of(fence_can_go(series, version, job, {}))};
}

bool record_can_go(bool is_young, bool has_roster, bool is_superseded) { return !is_young && (!has_roster || is_superseded); }

GcAnswer judge_meeting(const std::string& job, Id128 incarnation, bool is_young, const GcJob& evidence, bool unknown) {
    const std::string ranks = "the ranks of job " + job;
    if (is_young) return {Act::spare, "changed lately: " + ranks + " may be talking here"};
    if (!incarnation && !unknown) return {Act::spare, "nothing tells which job it is of, so " + ranks + " may talk here; --unknown takes it"};
    if (incarnation && evidence.is_served_here) return {Act::spare, ranks + " may talk here: a daemon of this host takes part in it"};
    if (incarnation && !evidence.is_over) return {Act::spare, ranks + " may talk here: it is on record"};
    return {Act::take_unfenced, "left behind by " + ranks + ", which is over"};
}

}  // namespace cairn
