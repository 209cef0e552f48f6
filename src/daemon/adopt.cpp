// Jobs, the start: what an earlier daemon left in scratch is found, believed or not, and goes on being flushed.
//
// Rosters first, then images; what a restart of the machine may have torn is asked for its proof (boot.hpp); then each image goes to its slot, and, where it is
// not committed, to the node as soon as its job can be joined. What can not be read for a reason that may pass is looked at again.
#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "daemon/blocking.hpp"
#include "daemon/jobs.hpp"
#include "daemon/slot_files.hpp"
#include "catalog/catalog.hpp"
#include "catalog/record.hpp"
#include "format/limits.hpp"
#include "format/roster.hpp"

namespace cairn {

namespace {

constexpr int io_errors_max = 5;  // of one image
constexpr int looks_max = 3;      // at a file that can not be read for a reason that may pass

Status daemon_ends() { return {Code::cancelled, "the daemon ends"}; }

// What the next look may find otherwise; nullptr when there is none.
const Unread* first_passing(const std::vector<Unread>& unread) {
    const auto found = std::find_if(unread.begin(), unread.end(), [](const Unread& each) { return may_pass(each.why); });
    return found == unread.end() ? nullptr : &*found;
}

}  // namespace

Task<Result<Roster>> Jobs::find_roster(Id128 incarnation) {
    const auto found = found_.find(incarnation);
    if (found != found_.end()) co_return found->second;
    Result<Bytes> bytes = co_await read_record(world_, layout_.job_roster(incarnation), FrameKind::roster, roster_bytes_max,
                                               world_.clock.in(io_wait_));
    if (!bytes.ok()) {
        Status status = co_await unless_root_missing(world_.storage, layout_.persistent, std::move(bytes).status(), world_.clock.in(io_wait_));
        co_return status;
    }
    Result<Roster> roster = decode_roster(*bytes);
    if (roster.ok() && roster->incarnation != incarnation)
        co_return corrupt(layout_.job_roster(incarnation) + ": of another job");
    co_return roster;
}

// The others may have been started again, too: their newest addresses are under persistent; where none is, the one of
// the open stays.
Task<Status> Jobs::join_again(Id128 incarnation) {
    if (node_.knows(incarnation)) co_return Status();
    Result<Roster> roster = co_await find_roster(incarnation);
    if (!roster.ok()) co_return std::move(roster).status();
    NodeIndex self = static_cast<NodeIndex>(roster->members.size());
    for (NodeIndex node = 0; node < roster->members.size(); ++node)
        if (roster->members[node].node == node_name_) self = node;
    Status joined = co_await join(std::move(roster).value(), self);
    co_return joined;
}

// Persistent retention leaves no trace of what it removed, so the rule itself must tell: what it would not keep any
// more was committed and let go, or would be at once if it were. Committing it again would undo the removal.
Task<Code> Jobs::look_at_manifest(VersionKey key) {
    Result<Manifest> manifest = co_await read_manifest(world_, layout_, key, world_.clock.in(io_wait_));
    if (manifest.ok()) co_return manifest->abandoned ? Code::cancelled : Code::ok;
    if (manifest.code() != Code::not_found || persistent_rule_.last == 0) co_return manifest.code();
    if (!series_.count(key.name)) {
        Result<std::vector<CatalogEntry>> entries =
            co_await list_versions(world_, layout_, key.name, world_.clock.in(io_wait_));
        if (!entries.ok()) co_return Code::not_found;  // flushed in vain at worst
        series_.emplace(key.name, std::move(entries).value());
    }
    co_return rule_keeps(persistent_rule_, series_.at(key.name), key) ? Code::not_found : Code::ok;
}

Task<void> Jobs::adopt(LocalImage image) {
    const VersionKey key = image.header.key;
    auto known = manifests_.find(key);
    if (known == manifests_.end()) {
        const Code code = co_await look_at_manifest(key);
        known = manifests_.emplace(key, code).first;
    }
    if (known->second == Code::cancelled) co_return slots_.discard(image.path);
    const bool committed = known->second == Code::ok;
    slots_.adopt(image, committed);
    if (!committed) unseen_[image.path] = key.incarnation;
    if (boot_.doubtful.count(doubt_of(image))) {
        unverified_.push_back({std::move(image), committed});
        co_return;
    }
    if (committed) co_return;
    co_await flush_on(std::move(image));
}

// An image whose slot is adopted goes to the node, as soon as its job can be joined.
Task<void> Jobs::flush_on(LocalImage image) {
    const VersionKey key = image.header.key;
    const Rank rank = image.header.rank;
    const std::string path = image.path;
    Status status = co_await join_again(key.incarnation);
    if (!slots_.holds(key, rank, path)) {  // dropped meanwhile
        unseen_.erase(path);
        co_return;
    }
    if (status.ok()) status = node_.add_image(image);
    if (status.ok())
        log_info("image-found", {{"name", key.name}, {"version", key.version}, {"rank", rank}, {"path", path}});
    else
        log_warning("image-can-not-be-flushed",
                    {{"name", key.name}, {"version", key.version}, {"rank", rank}, {"path", path}, {"why", status}});
    if (status.code() == Code::not_found) orphans_[key.incarnation].push_back(path);
    else if (!status.ok() && may_pass(status)) waiting_.push_back(std::move(image));
    else unseen_.erase(path);
}

Task<void> Jobs::adopt_waiting(std::function<bool()> over) {
    while (!over() && (verifying_ || !waiting_.empty())) {
        for (Unverified& each : std::exchange(unverified_, {})) {
            if (over()) co_return;
            Unverified one = std::move(each);
            co_await verify(std::move(one));
        }
        if (verifying_ && unverified_.empty()) {
            co_await note_boot();
            verifying_ = false;
        }
        if (!verifying_ && waiting_.empty()) break;
        co_await world_.clock.sleep(try_again);
        for (LocalImage& image : std::exchange(waiting_, {})) {
            LocalImage one = std::move(image);
            co_await flush_on(std::move(one));
        }
    }
    if (waiting_.empty()) found_.clear();
}

// Each look into an object of its own: one that is given up may still write into it.
Task<std::shared_ptr<Boot>> Jobs::look_at_boot(std::function<bool()> over) {
    while (!over()) {
        const auto boot = std::make_shared<Boot>();
        std::function<Status()> look = [boot, layout = scratch_] {
            for (const std::string& directory : {layout.root, layout.jobs()}) remove_temporaries(directory);
            *boot = Boot::look(layout);
            return Status();
        };
        const Status looked = co_await call_blocking(workers_, world_.clock, std::move(look), world_.clock.in(io_wait_));
        if (looked.ok()) co_return boot;
        log_warning("boot-not-known", {{"why", looked}});  // whatever the reason, it says nothing of the images
        co_await world_.clock.sleep(try_again);
    }
    co_return nullptr;
}

// True: it is gone.
Task<bool> Jobs::drop_torn(LocalImage image, Status why) {
    const ImageHeader& header = image.header;
    log_warning("image-not-believed", {{"name", header.key.name}, {"version", header.key.version}, {"rank", header.rank},
                                       {"path", image.path}, {"because", boot_.why}, {"why", why}});
    slots_.discard(image.path);  // before anything is waited for: the slot is handed out to nobody
    unseen_.erase(image.path);
    std::function<Status()> work = [path = image.path] { return remove_slot_file(path); };
    const Status removed = co_await call_blocking(workers_, world_.clock, std::move(work), world_.clock.in(io_wait_));
    if (!removed.ok()) log_warning("image-stays", {{"path", image.path}, {"why", removed}});
    co_return removed.ok();
}

// What a restart of the machine may have torn is believed only where its checksums prove it whole. At the start only the proof itself is looked
// at; data are read when others are answered already (verify). Until then nothing is flushed, and who restores compares with the checksums.
// What is still in doubt is noted before anybody is answered: an image that is sealed from now on has no proof yet, and needs none.
Task<Status> Jobs::drop_unproved(ScratchScan& scan, std::function<bool()> over) {
    const std::shared_ptr<Boot> looked = co_await look_at_boot(std::move(over));
    if (!looked) co_return daemon_ends();
    boot_ = *looked;
    boot_.doubtful.clear();
    for (const Unread& each : scan.unread)
        if (looked->doubts_file(each.path)) boot_.doubtful.insert(doubt_of_file(each.path));
    std::vector<LocalImage> proved;
    for (LocalImage& image : std::exchange(scan.images, {})) {
        const std::string doubt = doubt_of(image);
        LocalImage one = std::move(image);
        if (!looked->doubts(one)) {
            proved.push_back(std::move(one));
            continue;
        }
        boot_.doubtful.insert(doubt);
        const Status status = check_proof(one);
        if (status.ok()) {
            verifying_ = true;
            proved.push_back(std::move(one));
            continue;
        }
        const bool gone = co_await drop_torn(std::move(one), status);
        if (gone) boot_.doubtful.erase(doubt);
    }
    scan.images = std::move(proved);
    if (!boot_.noted || boot_.doubtful != looked->doubtful) co_await note_boot();
    co_return Status();
}

Task<void> Jobs::verify(Unverified one) {
    const std::string doubt = doubt_of(one.image);
    const Status status = co_await check_data(world_, one.image, io_wait_);
    const ImageHeader& header = one.image.header;
    if (!slots_.holds(header.key, header.rank, one.image.path) || status.ok()) {  // dropped meanwhile, or whole
        boot_.doubtful.erase(doubt);
        if (status.ok() && !one.committed) co_await flush_on(std::move(one.image));
        else unseen_.erase(one.image.path);
        co_return;
    }
    const bool lost = status.code() == Code::io_error && ++one.io_errors >= io_errors_max;  // a sector that the disk has lost
    if (may_pass(status) && !lost) {
        log_warning("image-can-not-be-checked", {{"path", one.image.path}, {"why", status}});
        unverified_.push_back(std::move(one));
        co_return;
    }
    const bool gone = co_await drop_torn(std::move(one.image), status);
    if (gone) boot_.doubtful.erase(doubt);
}

Task<void> Jobs::note_boot() {
    if (boot_.id.empty()) co_return;
    std::function<Status()> work = [boot = boot_, layout = scratch_] { return boot.note(layout); };
    const Status noted = co_await call_blocking(workers_, world_.clock, std::move(work), world_.clock.in(io_wait_));
    if (!noted.ok()) log_warning("boot-not-noted", {{"why", noted}});
}

Task<void> Jobs::wait_for_scratch(Status why) {
    if (why.text() != scratch_problem_.text()) log_warning("scratch-can-not-be-read", {{"why", why}});
    scratch_problem_ = std::move(why);
    co_await world_.clock.sleep(try_again);
}

// The directory is asked until it answers, files that can not be read a few times.
template <class Scan>
Task<Result<Scan>> Jobs::look_at_all(Task<Result<Scan>> (*look)(World&, ScratchLayout, Nanos), std::function<bool()> over) {
    Result<Scan> scan = co_await look(world_, scratch_, io_wait_);
    while (!scan.ok() && !over()) {
        Status why = scan.status();
        co_await wait_for_scratch(std::move(why));
        scan = co_await look(world_, scratch_, io_wait_);
    }
    for (int looks = 1; scan.ok() && first_passing(scan->unread) && looks < looks_max && !over(); ++looks) {
        Status why = first_passing(scan->unread)->why;
        co_await wait_for_scratch(std::move(why));
        co_await scan_again(world_, *scan, io_wait_);
    }
    co_return scan;
}

// One that stays unread may still stand under persistent (find_roster).
Task<Status> Jobs::find_rosters(std::function<bool()> over) {
    Result<JobScan> scan = co_await look_at_all(scan_jobs, over);
    if (over()) co_return daemon_ends();
    for (const Unread& each : scan->unread) log_error("job-can-not-be-read", {{"path", each.path}, {"why", each.why}});
    for (Roster& roster : scan->rosters) {
        const Id128 incarnation = roster.incarnation;
        found_.emplace(incarnation, std::move(roster));
    }
    co_return Status();
}

Task<Result<ScratchScan>> Jobs::find_images(std::function<bool()> over) {
    Result<ScratchScan> scan = co_await look_at_all(scan_scratch, over);
    if (over()) co_return daemon_ends();
    has_unread_ = first_passing(scan->unread) != nullptr;
    for (const Unread& each : scan->unread) {
        slots_.spare(each.path);
        log_event(may_pass(each.why) ? LogLevel::error : LogLevel::warning, may_pass(each.why) ? "image-can-not-be-read" : "image-damaged",
                  {{"path", each.path}, {"why", each.why}});
    }
    co_return scan;
}

Task<Status> Jobs::adopt_scratch(std::function<bool()> over) {
    Status rosters = co_await find_rosters(over);
    if (!rosters.ok()) co_return rosters;
    Result<ScratchScan> scan = co_await find_images(over);
    if (!scan.ok()) co_return std::move(scan).status();
    for (const std::string& path : scan->free_slots) slots_.discard(path);
    Status dropped = co_await drop_unproved(*scan, std::move(over));
    if (!dropped.ok()) co_return dropped;
    for (LocalImage& image : scan->images) {
        LocalImage one = std::move(image);
        co_await adopt(std::move(one));
    }
    slots_.apply_retention();
    std::set<Id128> wanted;  // also of images whose job can not be joined yet
    for (const VersionKey& key : slots_.unfinished()) wanted.insert(key.incarnation);
    std::vector<Id128> ended;
    for (const auto& [incarnation, roster] : found_)
        if (!has_unread_ && !node_.knows(incarnation) && !wanted.count(incarnation)) ended.push_back(incarnation);
    for (const Id128 incarnation : ended) co_await forget(incarnation, world_.clock.in(io_wait_));
    if (waiting_.empty() && !verifying_) found_.clear();
    manifests_.clear();
    series_.clear();
    knows_images_ = true;
    co_return Status();
}

Task<void> Jobs::look_into(Slots::Left left) {
    ++looking_;
    co_await take_left(std::move(left));
    --looking_;
}

Task<void> Jobs::take_left(Slots::Left left) {
    const std::string path = left.path;
    Result<std::optional<LocalImage>> image = co_await read_image(world_, path, world_.clock.in(io_wait_), slots_.mapping(path));
    for (int looks = 1; !image.ok() && may_pass(image.status()) && looks < looks_max; ++looks) {
        co_await world_.clock.sleep(try_again);
        image = co_await read_image(world_, path, world_.clock.in(io_wait_), slots_.mapping(path));
    }
    if (!image.ok() || !image->has_value() || !node_.knows((*image)->header.key.incarnation))
        co_return slots_.discard_unsealed(path, left.lease);
    LocalImage found = std::move(**image);
    if (!slots_.sealed(found, left.lease)) co_return;  // it was said after all
    const VersionKey key = found.header.key;
    const Rank rank = found.header.rank;
    const Status added = node_.add_image(std::move(found));
    if (!added.ok() && added.code() != Code::unavailable) slots_.discard(path);  // unavailable: for the next daemon
    log_info("image-of-lost-client",
             {{"name", key.name}, {"version", key.version}, {"rank", rank}, {"outcome", added}});
}

// ---- later ----

// Sealed while an earlier daemon was ending and taking the job's records away: its ranks live, and have told of the job again.
Task<void> Jobs::flush_orphans(Id128 incarnation) {
    const auto found = orphans_.find(incarnation);
    if (found == orphans_.end()) co_return;
    const std::vector<std::string> paths = std::move(found->second);
    orphans_.erase(found);
    for (const std::string& path : paths) {
        Result<std::optional<LocalImage>> image = co_await read_image(world_, path, world_.clock.in(io_wait_), slots_.mapping(path));
        if (image.ok() && image->has_value()) {
            LocalImage one = std::move(**image);
            co_await flush_on(std::move(one));
        } else if (!image.ok() && may_pass(image.status())) {
            orphans_[incarnation].push_back(path);
        } else {
            unseen_.erase(path);
        }
    }
}

Task<void> Jobs::flush_orphans_late(std::function<bool()> over) {
    while (!over()) {
        co_await world_.clock.sleep(try_again);
        std::vector<Id128> known;
        for (const auto& [incarnation, paths] : orphans_)
            if (node_.knows(incarnation)) known.push_back(incarnation);
        for (const Id128 incarnation : known) co_await flush_orphans(incarnation);
    }
}

bool Jobs::has_unseen(Id128 incarnation) const {
    if (!knows_images_ || has_unread_ || looking_ > 0) return true;  // whose they are is not known
    return std::any_of(unseen_.begin(), unseen_.end(), [&](const auto& image) { return image.second == incarnation; });
}

}  // namespace cairn
