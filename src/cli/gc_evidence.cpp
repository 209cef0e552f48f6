#include "cli/gc_evidence.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "cli/daemons.hpp"
#include "catalog/record.hpp"
#include "format/limits.hpp"
#include "format/roster.hpp"

namespace cairn::cli {

namespace {

constexpr std::uint64_t answer_wait_ms = 2000;

}  // namespace

bool is_old(const std::string& path, std::int64_t before_s) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && status.st_mtim.tv_sec < before_s;
}

Result<Evidence> Evidence::gather(Place& place, std::int64_t before_s) {
    Evidence evidence(place);
    const Layout& layout = place.layout();
    World& world = place.world();
    const auto jobs = place.run(world.storage.list(layout.jobs(), place.deadline()));
    if (jobs.code() == Code::not_found) return evidence;
    if (!jobs.ok()) return jobs.status().within("looking for jobs on record");
    for (const DirectoryEntry& job : *jobs) {
        Id128 incarnation;
        if (!job.is_directory || !Id128::parse(job.name, incarnation)) continue;
        const auto files = place.run(world.storage.list(layout.job(incarnation), place.deadline()));
        if (files.code() == Code::not_found) continue;  // its daemon took it away just now
        if (!files.ok()) return files.status().within("looking for jobs on record");
        Record record;
        for (const DirectoryEntry& file : *files) {
            const std::string path = layout.job(incarnation) + "/" + file.name;
            record.files.push_back(file.name);
            record.bytes += file.bytes;
            record.is_young |= !is_old(path, before_s);
            if (path != layout.job_roster(incarnation)) continue;
            record.has_roster = true;
            const auto bytes = place.run(read_record(world, path, FrameKind::roster, roster_bytes_max, place.deadline()));
            const Result<Roster> roster = bytes.ok() ? decode_roster(*bytes) : Result<Roster>(bytes.status());
            if (!roster.ok() || roster->incarnation != incarnation) continue;
            record.name = roster->name;
            evidence.roots_.insert(roster->roots.begin(), roster->roots.end());
        }
        record.is_young |= record.files.empty() && !is_old(layout.job(incarnation), before_s);
        evidence.records_.emplace(incarnation, std::move(record));
    }
    return evidence;
}

bool Evidence::over(Id128 incarnation) const {
    const auto found = records_.find(incarnation);
    return found == records_.end() || !found->second.has_roster || dismissed_.count(incarnation) != 0;
}

bool Evidence::served_here(Id128 incarnation) {
    for (const ScratchLayout& root : scratch_roots(place_->settings())) {
        const auto jobs = place_->run(place_->world().storage.list(root.jobs(), place_->deadline()));
        const auto is_it = [&](const DirectoryEntry& entry) {
            Id128 job;
            return Id128::parse(entry.name, job) && job.high == incarnation.high &&
                   (incarnation.low == 0 || job.low == incarnation.low);
        };
        if (!jobs.ok() || std::none_of(jobs->begin(), jobs->end(), is_it)) continue;
        auto known = answers_.find(root.root);
        if (known == answers_.end()) {
            const auto reached = reach(root, answer_wait_ms);
            known = answers_.emplace(root.root, !reached.ok() || reached->has_value()).first;
        }
        if (known->second) return true;
    }
    return false;
}

std::optional<Id128> Evidence::whole_id(std::uint64_t half) const {
    for (const auto& [incarnation, record] : records_)
        if (incarnation.high == half) return incarnation;
    return std::nullopt;
}

}  // namespace cairn::cli
