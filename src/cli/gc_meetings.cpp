// The meeting places of ranks without MPI: <persistent>/.cairn/rendezvous/<job>, with a directory x-<digest> for each meeting and beside it
// the files of the newest one (client/rendezvous.hpp). A session ends by taking its own away; one that was killed does not.
//
// That they are old says nothing: ranks that compute for a day call nothing collective. So a meeting counts as in use while the incarnation
// that it names may be alive, by the evidence that holds for all else: its roster is on record, or a daemon of this host serves it. One that
// names none was killed in open, is younger than that takes, or is an older release's.
#include <algorithm>

#include "cli/gc_collect.hpp"
#include "format/names.hpp"

namespace cairn::cli {

namespace {

constexpr std::uint64_t incarnation_bytes_max = 64;

class Meetings {
  public:
    Meetings(Place& place, Evidence& evidence, const CollectOptions& options)
        : place_(place), evidence_(evidence), options_(options) {}

    Collected run() {
        const auto jobs = list(place_.layout().meetings());
        if (!jobs.ok()) return {};
        for (const DirectoryEntry& job : *jobs)
            if (job.is_directory && valid_name(job.name)) look_at(job.name);
        return std::move(collected_);
    }

  private:
    Result<std::vector<DirectoryEntry>> list(const std::string& path) {
        return place_.run(place_.world().storage.list(path, place_.deadline()));
    }

    static bool is_meeting(const DirectoryEntry& entry) {
        Id128 digest;
        return entry.is_directory && entry.name.starts_with("x-") && Id128::parse(entry.name.substr(2), digest);
    }
    // Files of the newest meeting, and what was on its way to be one.
    static bool is_file_of_meeting(const DirectoryEntry& entry) {
        return !entry.is_directory &&
               (entry.name.starts_with("join-") || entry.name.starts_with("ack-") || entry.name == "roster" ||
                entry.name == "final" || parse_temporary_file_name(entry.name));
    }

    void look_at(const std::string& job) {
        const std::string directory = place_.layout().meeting(job);
        const auto entries = list(directory);
        if (!entries.ok()) return;
        Leftover top;
        top.directory = directory;
        top.before_s = options_.meeting_before_s;
        top.why = "the meeting place of the ranks of job " + job + ", which nobody uses";
        bool is_ours = entries->empty(), in_use = false, is_young = entries->empty() && !is_old(directory, top.before_s);
        for (const DirectoryEntry& entry : *entries) {
            is_ours |= is_meeting(entry) || is_file_of_meeting(entry);
            if (is_meeting(entry)) in_use |= !meeting(job, directory + "/" + entry.name);
            if (!is_file_of_meeting(entry)) continue;
            top.files.push_back(entry.name);
            top.bytes += entry.bytes;
            is_young |= !is_old(directory + "/" + entry.name, top.before_s);
        }
        if (in_use || !is_ours) return;  // the first is said already
        if (is_young) {
            top.why = "changed lately: the ranks of job " + job + " may be meeting here";
            collected_.spare.push_back(std::move(top));
        } else {
            collected_.take.push_back(std::move(top));
        }
    }

    // Whether it is taken.
    bool meeting(const std::string& job, const std::string& directory) {
        const auto files = list(directory);
        if (!files.ok()) return files.code() == Code::not_found;  // it ended just now
        Leftover out;
        out.directory = directory;
        out.before_s = options_.meeting_before_s;
        bool is_young = !is_old(directory, out.before_s);
        for (const DirectoryEntry& file : *files) {
            out.files.push_back(file.name);
            out.bytes += file.bytes;
            is_young |= !is_old(directory + "/" + file.name, out.before_s);
        }
        const Id128 incarnation = named(directory);
        const auto record = evidence_.records().find(incarnation);
        out.key.incarnation = incarnation;
        if (record != evidence_.records().end()) out.key.name = record->second.name;
        const GcJob known = is_young || !incarnation ? GcJob() : GcJob{evidence_.over(incarnation), evidence_.served_here(incarnation)};
        GcAnswer answer = judge_meeting(job, incarnation, is_young, known, options_.unknown);
        const bool goes = answer.act != GcAnswer::Act::spare;
        out.why = std::move(answer.why);
        (goes ? collected_.take : collected_.spare).push_back(std::move(out));
        return goes;
    }

    // The incarnation that rank 0 wrote down last; zero where it did not come to that.
    Id128 named(const std::string& directory) {
        const auto bytes = place_.run(read_file(place_.world().storage, directory + "/incarnation", incarnation_bytes_max,
                                                place_.deadline()));
        Id128 incarnation;
        if (bytes.ok() && !Id128::parse(as_text(*bytes), incarnation)) return {};
        return incarnation;
    }

    Place& place_;
    Evidence& evidence_;
    CollectOptions options_;
    Collected collected_;
};

}  // namespace

Collected collect_meetings(Place& place, Evidence& evidence, const CollectOptions& options) {
    return Meetings(place, evidence, options).run();
}

}  // namespace cairn::cli
