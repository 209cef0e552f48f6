// Restore: the newest version that all ranks can get, or the one asked for, back into the application.
//
// Of one version, all ranks first fetch: verified bytes go into memory, into buffers for callbacks, into files beside
// the routed ones. Only when all ranks have everything are callbacks called and files renamed. A version that turns out
// damaged is told and left for the next older one, unless it was asked for by number.
#include "client/restore.hpp"

#include <algorithm>
#include <set>

#include "client/guarded.hpp"
#include "client/packer.hpp"
#include "copies/restore.hpp"
#include "copies/scratch.hpp"
#include "read/hand_out.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t buffer_bytes = 8u << 20;  // of one read; a few are in flight in each of a node's ranks

// Whether an older version could do better than this one did.
bool another_may_do(const Status& status) {
    switch (status.code()) {
        case Code::corrupt:
        case Code::io_error:
        case Code::unavailable:
        case Code::unsupported:
        case Code::deadline:
        case Code::permission:
            return true;
        default:
            return false;
    }
}

}  // namespace

Result<std::unique_ptr<ImageReader>> ImageReader::create(std::unique_ptr<RealWorld> real, const Layout& layout,
                                                         Rank rank, std::uint64_t wait_ms, std::uint64_t io_ms) {
    std::unique_ptr<ImageReader> reader(new ImageReader);
    reader->real_ = std::move(real);
    reader->layout_ = layout;
    reader->rank_ = rank;
    reader->settings_.buffer_bytes = buffer_bytes;
    reader->settings_.io_wait = static_cast<Nanos>(io_ms) * millisecond;
    reader->until_ = reader->real_->loop().now() + static_cast<Nanos>(wait_ms) * millisecond;
    return reader;
}

Status ImageReader::open_local(const KeptVersion& kept) {
    World world = real_->world();
    auto read = real_->loop().run(read_image(world, kept.local_path, until_));
    // Somebody has tidied scratch up; not that the version is not there.
    if (read.code() == Code::not_found) return corrupt(kept.local_path + ": is not there any more");
    TRY_ASSIGN(std::optional<LocalImage> image, std::move(read));
    if (!image || image->header.key != kept.key || image->header.rank != rank_)
        return corrupt(kept.local_path + ": the image of version " + std::to_string(kept.key.version) +
                       " is not there any more");
    local_ = std::move(image);
    return {};
}

Status ImageReader::open_committed(const KeptVersion& kept) {
    World world = real_->world();
    auto read = real_->loop().run(read_manifest(world, layout_, kept.key, until_));
    if (read.code() == Code::not_found)  // an older version may be there still
        return corrupt("version " + std::to_string(kept.key.version) + " was removed while it was looked for");
    TRY_ASSIGN(Manifest manifest, std::move(read));
    if (manifest.abandoned) return corrupt("version " + std::to_string(kept.key.version) + " was abandoned");
    TRY_ASSIGN(committed_, real_->loop().run(open_version(world, layout_, std::move(manifest), rank_, settings_)));
    if (!committed_->image(rank_))
        return corrupt("no part of version " + std::to_string(kept.key.version) + " has the image of rank " +
                       std::to_string(rank_));
    return {};
}

const ImageInfo& ImageReader::image() const { return local_ ? local_->header.image : *committed_->image(rank_); }

Status ImageReader::read(std::vector<ImageRange> ranges, ImageSink sink) {
    World world = real_->world();
    if (local_) return real_->loop().run(restore_local(world, *local_, std::move(ranges), std::move(sink), settings_));
    return real_->loop().run(
        restore_image(world, layout_, *committed_, rank_, std::move(ranges), std::move(sink), settings_));
}

// ---- one version ----

RestoreRun::RestoreRun(Session& session, const std::vector<std::string>* names, Deadline deadline)
    : session_(session), names_(names), deadline_(deadline) {}

Result<std::vector<const ProtectedRegion*>> RestoreRun::wanted() const {
    std::vector<const ProtectedRegion*> wanted;
    if (!names_) {
        for (const ProtectedRegion& region : session_.regions_.all()) wanted.push_back(&region);
        return wanted;
    }
    std::set<const ProtectedRegion*> seen;
    for (const std::string& name : *names_) {
        const ProtectedRegion* region = session_.regions_.find(name);
        if (!region)
            return not_found("region \"" + name + "\" is not protected: protect it where it should be restored to");
        if (seen.insert(region).second) wanted.push_back(region);
    }
    return wanted;
}

Status RestoreRun::aim(const KeptVersion& kept, ImageInfo image) {
    targets_.clear();
    TRY_ASSIGN(const auto regions, wanted());
    TRY_ASSIGN(const MemoryMap map, MemoryMap::read());
    const ImageRegions held(std::move(image));
    targets_.reserve(regions.size());
    for (const ProtectedRegion* region : regions) {
        const Region* found = held.find(region->name);
        if (!found)
            return not_found("version " + std::to_string(kept.key.version) + " has no region \"" + region->name +
                             "\" of rank " + std::to_string(session_.rank_) +
                             ": unprotect it, or restore the others by name");
        TRY(check_fits(*region, *found));
        targets_.push_back(std::make_unique<RestoreTarget>(*region, *found));
        TRY(targets_.back()->prepare(map));
    }
    return {};
}

// `refused`: it is the application that does not fit, and no other level or version would do.
Status RestoreRun::fetch_from(ImageReader& reader, const KeptVersion& kept, bool& refused) {
    const Status aimed = aim(kept, reader.image());
    refused = !aimed.ok();
    TRY(aimed);
    HandOut out;
    const Rank rank = session_.rank_;
    for (const auto& target : targets_)
        out.add(rank, {target->kept().offset, target->kept().length},
                [place = target.get()](std::uint64_t at, ByteView bytes) { return place->take(at, bytes); });
    if (out.empty()) return {};
    TRY(reader.read(out.ranges_of(rank), [&](std::uint64_t offset, Slice data) { return out.take(rank, offset, data.bytes()); }));
    return out.check_complete();
}

// From the cheapest level that holds. Damage in scratch is told, and the committed files are asked.
Status RestoreRun::fetch(const KeptVersion& kept, bool& refused) {
    const auto& deadlines = session_.settings_.deadlines;
    TRY_ASSIGN(auto real, session_.open_world());
    TRY_ASSIGN(const auto reader, ImageReader::create(std::move(real), session_.layout_, session_.rank_,
                                                      deadline_.left_ms(), deadlines.io_ms));
    refused = false;
    Status local = corrupt("nothing of version " + std::to_string(kept.key.version) + " in this node's scratch");
    if (!kept.local_path.empty()) {
        local = reader->open_local(kept);
        if (local.ok()) local = fetch_from(*reader, kept, refused);
        if (local.ok() || refused || !kept.committed || !another_may_do(local)) return local;
        notes_ += "rank " + std::to_string(session_.rank_) +
                  ": the image in scratch is damaged, taking the committed files: " + local.to_string() + "\n";
        reader->close_local();
    }
    if (!kept.committed) return local;
    TRY(reader->open_committed(kept));
    return fetch_from(*reader, kept, refused);
}

// Collective. refused is the same on all ranks.
Status RestoreRun::restore(const KeptVersion& kept, bool& refused) {
    // Whatever happens here, the others are to hear of it: they wait in the exchange below.
    const Status mine = guarded([&] { return fetch(kept, refused); });
    Packer packer;
    packer.number<std::uint8_t>(refused).status(mine);
    TRY_ASSIGN(const std::vector<Bytes> all, session_.exchange_->allgather(packer.take(), deadline_));
    Status worst;
    refused = false;
    for (Rank rank = 0; rank < all.size(); ++rank) {
        Unpacker unpacker(all[rank]);
        const bool refuses = unpacker.number<std::uint8_t>() != 0;
        Status status = unpacker.status();
        if (status.ok() || (!worst.ok() && (refused || !refuses))) continue;
        refused = refuses || !another_may_do(status);
        worst = all.size() == 1 ? status : status.within("rank " + std::to_string(rank));
    }
    TRY(worst);
    Status finished;
    for (const auto& target : targets_)
        if (finished.ok()) finished = target->finish();
    targets_.clear();
    refused = true;  // the application has seen bytes
    return session_.exchange_->agree(finished, deadline_);
}

Result<const KeptVersion*> RestoreRun::newest() {
    notes_ += session_.kept_notes_;
    Status last;
    for (auto it = session_.kept_.rbegin(); it != session_.kept_.rend(); ++it) {
        const std::string version = "version " + std::to_string(it->key.version);
        if (!it->committed && !it->sealed) {
            notes_ += version + " is damaged, going back to an older one: " + it->damage.to_string() + "\n";
            last = it->damage;
            continue;
        }
        TRY(session_.check_ranks(*it));
        bool refused = false;
        const Status status = restore(*it, refused);
        if (status.ok()) return &*it;
        if (refused) return status.within(version);
        notes_ += version + " is damaged, going back to an older one: " + status.to_string() + "\n";
        last = status;
    }
    if (const Status& tail = session_.kept_tail_; !tail.ok()) return Status(tail.code(), notes_);  // they name it
    if (last.ok()) return not_found("no version of \"" + session_.name_ + "\" can be restored by all ranks");
    return Status(Code::corrupt, "no version of \"" + session_.name_ + "\" is whole:\n" + notes_);
}

Result<const KeptVersion*> RestoreRun::exactly(Version version) {
    notes_ += session_.kept_notes_;
    const KeptVersion* kept = session_.find_kept(version);
    const std::string who = "version " + std::to_string(version);
    if (!kept) TRY(session_.kept_tail_);
    if (!kept)
        return not_found(who + " of \"" + session_.name_ +
                         "\" can not be restored by all ranks; `cairn ls` lists what there is");
    if (!kept->committed && !kept->sealed) return kept->damage.within(who);
    TRY(session_.check_ranks(*kept));
    bool refused = false;
    TRY(restore(*kept, refused).within(who));
    return kept;
}

Result<Version> Session::restore(Version version, const std::vector<std::string>* names) {
    const Deadline deadline = Deadline::in_ms(settings_.deadlines.restore_ms);
    RestoreRun run(*this, names, deadline);
    Result<const KeptVersion*> kept = static_cast<const KeptVersion*>(nullptr);
    const Status surveyed = exchange_->agree(survey(deadline), deadline);
    if (!surveyed.ok())
        kept = surveyed;
    else
        kept = version == CAIRN_NEWEST ? run.newest() : run.exactly(version);
    {
        const std::lock_guard lock(state_);
        warnings_ = run.notes();
    }
    Status status = kept.status();
    if (status.ok()) status = continue_from(**kept, deadline);
    // Not before: until it is on record that this version is gone on from, daemons may think that nobody needs it (engine/dead.hpp).
    static_cast<void>(daemon_->ask_for<control::Done>(control::Unpin{}, deadline));
    TRY(status);
    return (*kept)->key.version;
}

// What is taken from here on has this version as its parent. The first restore of an open names the parent of its
// incarnation; going back again, or after checkpoints, begins another.
Status Session::continue_from(const KeptVersion& kept, Deadline deadline) {
    enum Need : std::uint8_t { nothing, parent_named, new_incarnation };
    const Parent parent{kept.key.incarnation, kept.key.version};
    Need need = new_incarnation;
    if (!took_any_ && roster_.parent == parent) need = nothing;
    else if (!took_any_ && !roster_.parent.incarnation) need = parent_named;
    // A checkpoint may have been taken by some ranks and failed on others: what the one with most needs is done by all.
    Packer packer;
    packer.number<std::uint8_t>(need);
    TRY_ASSIGN(const std::vector<Bytes> all, exchange_->allgather(packer.take(), deadline));
    for (const Bytes& each : all) need = std::max(need, static_cast<Need>(Unpacker(each).number<std::uint8_t>()));
    if (need == nothing) return {};
    if (need == new_incarnation) return begin_incarnation(parent, deadline);
    Roster roster = roster_;
    roster.parent = parent;
    Status status;
    if (rank_ == 0) {
        const Deadline early = deadline.early();
        status = files::patiently(early, is_away, [&] { return name_parent(parent, early); });
    }
    if (status.ok()) status = join(roster, deadline);
    return take_over(roster, status, deadline);
}

// Rank 0 alone.
Status Session::name_parent(const Parent& parent, Deadline deadline) {
    TRY_ASSIGN(const std::unique_ptr<RealWorld> real, open_world());
    World world = real->world();
    const Nanos until = real->loop().now() + static_cast<Nanos>(deadline.left_ms()) * millisecond;
    return real->loop().run(
        record_parent(world, layout_, name_, roster_.epoch, from_record(roster_.incarnation, parent), until));
}

// Local: asks scratch first, then the committed files; remembers the answer.
Result<std::shared_ptr<const ImageRegions>> Session::image_of(Version version) {
    if (kept_.empty())
        return not_found("no version of \"" + name_ +
                         "\" is known: cairn_newest or cairn_list comes first, and finds one");
    auto* kept = const_cast<KeptVersion*>(find_kept(version));
    if (!kept || (!kept->committed && !kept->sealed))
        return not_found("version " + std::to_string(version) + " of \"" + name_ +
                         "\" is not among those that the last cairn_newest, cairn_list or cairn_restore found");
    TRY(check_ranks(*kept));
    if (kept->image) return kept->image;
    TRY_ASSIGN(auto real, open_world());
    TRY_ASSIGN(const auto reader, ImageReader::create(std::move(real), layout_, rank_, settings_.deadlines.open_ms,
                                                      settings_.deadlines.io_ms));
    Status status = kept->local_path.empty() ? not_found("not in this node's scratch") : reader->open_local(*kept);
    if (!status.ok() && kept->committed) status = reader->open_committed(*kept);
    TRY(status);
    kept->image = std::make_shared<const ImageRegions>(reader->image());
    return kept->image;
}

}  // namespace cairn
