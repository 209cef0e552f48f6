// Repair, in this order: what tells; the lineage directory itself; record by record, the .from first; version directories.
#include "catalog/repair.hpp"

#include <algorithm>
#include <map>

#include "catalog/record.hpp"
#include "format/limits.hpp"
#include "format/names.hpp"
#include "format/roster.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t record_bytes_max = 1ull << 20;

// Of jobs that may run, by the rosters under persistent. A roster that can not be read may be of any series.
struct Jobs {
    std::vector<SealedVersion> tell;
    bool all_read = true;
};

Task<Result<Jobs>> read_jobs(World& world, Layout layout, std::string name, Nanos io_wait) {
    Jobs jobs;
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(layout.jobs(), world.clock.in(io_wait));
    if (entries.code() == Code::not_found) co_return jobs;
    if (!entries.ok()) co_return std::move(entries).status();
    for (const DirectoryEntry& entry : *entries) {
        Id128 incarnation;
        if (!Id128::parse(entry.name, incarnation)) continue;
        Result<Bytes> bytes = co_await read_record(world, layout.job_roster(incarnation), FrameKind::roster, roster_bytes_max, world.clock.in(io_wait));
        if (bytes.code() == Code::not_found) continue;
        const Result<Roster> roster = bytes.ok() ? decode_roster(*bytes) : Result<Roster>(bytes.status());
        jobs.all_read &= roster.ok();
        if (roster.ok() && roster->name == name) jobs.tell.push_back({roster->incarnation, roster->epoch, 0, roster->parent, false});
    }
    co_return jobs;
}

class Repairer {
  public:
    Repairer(World& world, Layout layout, std::string name, std::vector<SealedVersion> sealed, RepairOptions options)
        : world_(world), layout_(std::move(layout)), name_(std::move(name)), told_(std::move(sealed)), options_(options) {}

    Task<Result<Repair>> run() {
        Result<LineageRecords> records = co_await read_lineage(world_, layout_, name_, deadline());
        if (!records.ok()) co_return std::move(records).status();
        Result<std::vector<CatalogEntry>> entries = co_await list_versions(world_, layout_, name_, deadline());
        if (!entries.ok()) co_return std::move(entries).status();
        Result<Jobs> jobs = co_await read_jobs(world_, layout_, name_, options_.io_wait);
        if (!jobs.ok()) co_return std::move(jobs).status();
        entries_ = std::move(entries).value();
        told_.insert(told_.end(), jobs->tell.begin(), jobs->tell.end());
        all_jobs_read_ = jobs->all_read;
        lineage_ = current_lineage(*records, entries_, told_);
        Status status;
        if (!records->unlisted.ok()) status = co_await directory(records->unlisted);
        for (const LineageEntry& entry : records->opens) {
            if (status.ok() && entry.from_damage) status = co_await from(entry);
            if (status.ok() && entry.open_damage) status = co_await open(entry);
        }
        for (const CatalogEntry& entry : entries_)
            if (status.ok() && entry.unlisted()) status = co_await version(entry);
        if (!status.ok()) co_return status;
        co_return std::move(repair_);
    }

  private:
    Nanos deadline() const { return world_.clock.in(options_.io_wait); }

    // What may be well again when the file system is, or is a newer Cairn's, is not written over unasked.
    bool may_touch(const Status& damage) {
        if (damage.code() == Code::corrupt) return true;
        if (damage.code() == Code::unsupported) {
            repair_.left.push_back(damage);
            return false;
        }
        if (options_.forget) return true;
        const char* const may_be = damage.code() == Code::permission ? ": it may be whole, and its owner can give the right to read it (chmod g+r)"
                                                                     : ": it may be whole when the file system is well; if it never will be: --forget";
        repair_.left.push_back(Status(damage.code(), damage.text() + may_be));
        return false;
    }

    void leave(const Status& damage, const std::string& why) { repair_.left.push_back(Status(damage.code(), damage.text() + ": " + why)); }

    Task<Status> from(const LineageEntry& entry) {
        if (!may_touch(*entry.from_damage)) co_return Status();
        const std::string path = layout_.lineage_from(name_, entry.open.epoch);
        const Told told = told_of(entry, entries_, told_);
        if (told.incarnation && told.parent_told) {
            Bytes bytes = encode_from_record({told.incarnation, told.parent});
            std::string how = "written anew: " + (told.parent.incarnation ? "went on from version " + std::to_string(told.parent.version) + " of incarnation " + told.parent.incarnation.hex()
                                                                          : std::string("a fresh start"));
            Status written = co_await rewrite(path, std::move(bytes), std::move(how));
            co_return written;
        }
        const bool decides = !lineage_.head.ok() || !lineage_.tail.ok();
        if (decides && !options_.forget) {
            leave(*entry.from_damage, "the open of epoch " + std::to_string(entry.open.epoch) +
                                          " went on from a version that nothing else tells. With --forget a restart goes on as if it had not; a version that is wanted instead can be restored by its number then");
            co_return Status();
        }
        std::string why = "what the open of epoch " + std::to_string(entry.open.epoch) + " went on from is forgotten";
        Status put = co_await put_aside(path, std::move(why));
        co_return put;
    }

    Task<Status> open(const LineageEntry& entry) {
        if (!may_touch(*entry.open_damage)) co_return Status();
        const Told told = told_of(entry, entries_, told_);
        if (!told.incarnation && !all_jobs_read_ && !options_.forget) {
            leave(*entry.open_damage, "it harms nothing, and whose it is may be told by a roster under " + layout_.jobs() + " that can not be read");
            co_return Status();
        }
        OpenRecord record;
        record.incarnation = told.incarnation ? told.incarnation : nobodys_incarnation(entry.open.epoch);
        record.epoch = entry.open.epoch;
        record.ranks = std::max(told.ranks, 1u);
        Bytes bytes = encode_open_record(record);
        std::string path = layout_.lineage_open(name_, record.epoch);
        std::string how = "written anew: " + (told.incarnation ? "incarnation " + told.incarnation.hex() : "of an open that left nothing");
        Status written = co_await rewrite(std::move(path), std::move(bytes), std::move(how));
        co_return written;
    }

    // Something else stands in its place: a new one is made of all that is told.
    Task<Status> directory(const Status& damage) {
        if (damage.code() != Code::corrupt) {
            leave(damage, "give yourself the right to list it, or look after the file system; a lineage that can not be listed is not put aside");
            co_return Status();
        }
        if (!options_.forget) {
            leave(damage, "a new one can be made of what manifests and images tell. Opens that went back to an older version and committed nothing since are not among it, so only with --forget");
            co_return Status();
        }
        const std::string lineage = layout_.lineage(name_);
        std::string why = "a new one is made of what manifests and images tell";
        Status made = co_await put_aside(lineage, std::move(why));
        if (made.ok() && !options_.only_look) made = co_await make_directories(world_.storage, layout_.persistent, lineage, deadline());
        if (made.ok() && !options_.only_look) made = co_await rebuild();
        co_return made;
    }

    Task<Status> rebuild() {
        std::map<std::uint64_t, LineageEntry> epochs;
        for (const CatalogEntry& entry : entries_)
            if (entry.manifest && (entry.committed() || entry.manifest->epoch > 1)) epochs[entry.manifest->epoch].open.epoch = entry.manifest->epoch;
        for (const SealedVersion& version : told_) epochs[version.epoch].open.epoch = version.epoch;
        // Epochs that nothing tells are below the clock: they began there, and count.
        const std::uint64_t highest = epochs.empty() ? 0 : epochs.rbegin()->first;
        const std::uint64_t above = std::max(highest + 1, std::min(world_.clock.wall_time_s(), epoch_max / 2));
        epochs[above].open.epoch = above;
        for (const auto& [epoch, entry] : epochs) {
            const Told told = told_of(entry, entries_, told_);
            OpenRecord record;
            record.incarnation = told.incarnation ? told.incarnation : world_.random.id();
            record.epoch = epoch;
            record.ranks = std::max(told.ranks, 1u);
            Bytes bytes = encode_open_record(record);
            std::string path = layout_.lineage_open(name_, epoch);
            Status published = co_await publish(std::move(path), std::move(bytes));
            if (published.ok() && told.parent.incarnation) {
                bytes = encode_from_record({told.incarnation, told.parent});
                path = layout_.lineage_from(name_, epoch);
                published = co_await publish(std::move(path), std::move(bytes));
            }
            if (!published.ok()) co_return published;
        }
        co_return Status();
    }

    Task<Status> version(const CatalogEntry& entry) {
        if (!may_touch(*entry.damage)) co_return Status();
        Version newest = 0;
        for (const CatalogEntry& each : entries_)
            if (each.committed() && lineage_.contains(each.key.incarnation, each.key.version)) newest = each.key.version;
        if (!lineage_.hidden.ok() && newest < entry.key.version && !options_.forget) {
            leave(*entry.damage, "it may have held the only version that an open after the newest one committed; with --forget it is put aside");
            co_return Status();
        }
        std::string path = layout_.version(name_, entry.key.version), why = "nothing in it can be read";
        Status put = co_await put_aside(std::move(path), std::move(why));
        co_return put;
    }

    // ---- how ----

    static std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

    Task<Result<std::string>> write_temporary(std::string path, Bytes bytes) {
        const std::string temporary = parent_of(path) + "/" + temporary_file_name(world_.random.id());
        Status wrote = co_await write_file(world_.storage, temporary, std::move(bytes), 0644, deadline());
        if (!wrote.ok()) co_return wrote;
        co_return temporary;
    }

    // Under a name that nobody has; one that somebody else took meanwhile is as good.
    Task<Status> publish(std::string path, Bytes bytes) {
        Result<std::string> temporary = co_await write_temporary(path, std::move(bytes));
        if (!temporary.ok()) co_return std::move(temporary).status();
        Status published = co_await world_.storage.publish(*temporary, path, deadline());
        const Status removed = co_await world_.storage.remove(*temporary, deadline());
        (void)removed;
        if (!published.ok() && published.code() != Code::already_exists) co_return published;
        Status synced = co_await world_.storage.fsync_name(path, deadline());
        co_return synced;
    }

    // In the damaged one's place, in one step; a copy of what stood there is kept, as far as it can be read.
    Task<Status> rewrite(std::string path, Bytes bytes, std::string how) {
        repair_.done.push_back({path, std::move(how)});
        if (options_.only_look) co_return Status();
        const std::string aside = aside_name(path, world_.random.id());
        Result<Bytes> old = co_await read_file(world_.storage, path, record_bytes_max, deadline());
        if (old.ok()) {
            Status kept = co_await write_file(world_.storage, aside, std::move(old).value(), 0644, deadline());
            if (!kept.ok()) co_return kept;
            repair_.done.back().how += "; what stood there is in " + aside;
        }
        Result<std::string> temporary = co_await write_temporary(path, std::move(bytes));
        if (!temporary.ok()) co_return std::move(temporary).status();
        Status replaced = co_await world_.storage.replace(*temporary, path, deadline());
        if (!replaced.ok()) {  // over a directory no file can be put
            Status moved = co_await world_.storage.replace(path, aside, deadline());
            if (moved.ok()) replaced = co_await world_.storage.replace(*temporary, path, deadline());
        }
        if (!replaced.ok()) co_return replaced;
        Status synced = co_await world_.storage.fsync_name(path, deadline());
        co_return synced;
    }

    Task<Status> put_aside(std::string path, std::string why) {
        const std::string aside = aside_name(path, world_.random.id());
        repair_.done.push_back({path, "put aside as " + aside + ": " + why});
        if (options_.only_look) co_return Status();
        Status moved = co_await world_.storage.replace(path, aside, deadline());
        if (!moved.ok()) co_return moved;
        Status synced = co_await world_.storage.fsync_directory(parent_of(path), deadline());
        co_return synced;
    }

    World& world_;
    Layout layout_;
    std::string name_;
    std::vector<SealedVersion> told_;  // by images and rosters
    RepairOptions options_;
    std::vector<CatalogEntry> entries_;
    bool all_jobs_read_ = true;
    Lineage lineage_;
    Repair repair_;
};

}  // namespace

Task<Result<Repair>> repair_lineage(World& world, Layout layout, std::string name, std::vector<SealedVersion> sealed, RepairOptions options) {
    Repairer repairer(world, std::move(layout), std::move(name), std::move(sealed), options);
    Result<Repair> repair = co_await repairer.run();
    co_return repair;
}

}  // namespace cairn
