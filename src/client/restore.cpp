// Restore: the newest version that all ranks can get, or the one asked for, back into the application.
//
// Of one version, all ranks first fetch: verified bytes go into memory, into buffers for callbacks, into files beside
// the routed ones. Only when all ranks have everything are callbacks called and files renamed. A version that turns out
// damaged is told and left for the next older one, unless it was asked for by number. One that may not be read is not
// damaged: it ends the restart, which would leave it behind for good.
#include "client/restore.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/checksum.hpp"
#include "client/guarded.hpp"
#include "client/packer.hpp"
#include "world/real/world.hpp"

namespace cairn {

namespace {

RestoreSettings restore_settings(const Settings& settings) {
    RestoreSettings restore;
    restore.buffer_bytes = 8u << 20;  // of one read; a few are in flight in each of a node's ranks
    restore.io_wait = static_cast<Nanos>(settings.deadlines.io_ms) * millisecond;
    return restore;
}

bool may_go_back(const Status& status) { return another_may_do(status) && status.code() != Code::permission; }

// It may be whole: to go back behind it is the user's word.
Status not_passed_over(const Status& status, const std::string& version) {
    if (status.code() != Code::permission) return status.within(version);
    return Status(status.code(), version + ": " + status.text() + ": its owner can give the right to read it (chmod g+r), or ask for an older version by its number");
}

ImagePlaces places_of(const KeptVersion& kept, Rank rank) { return {kept.key, rank, kept.local_path, kept.committed}; }

// Names that are the same on all ranks, and are used once.
std::optional<SharedPlace> shared_place(const DaemonHome& home, const KeptVersion& kept, Rank rank, Id128 incarnation, std::uint64_t fetch) {
    if (!kept.committed || !kept.local_path.empty() || kept.from_parts.size() < 2) return std::nullopt;
    char series[17];
    std::snprintf(series, sizeof series, "%016llx", static_cast<unsigned long long>(checksum(as_bytes(kept.key.name))));
    const std::string directory = ScratchLayout::of(home.scratch, ::geteuid(), home.node, home.persistent).shared();
    return SharedPlace{directory, series, incarnation.hex() + "-" + std::to_string(fetch), kept.from_parts, rank};
}

}  // namespace

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

// Once for each level that is tried: what an earlier one has filled is begun anew.
Result<HandOut> RestoreRun::aim(const KeptVersion& kept, const ImageInfo& image) {
    targets_.clear();
    TRY_ASSIGN(const auto regions, wanted());
    TRY_ASSIGN(const MemoryMap map, MemoryMap::read());
    const ImageRegions held(image);
    HandOut out;
    targets_.reserve(regions.size());
    for (const ProtectedRegion* region : regions) {
        const Region* found = held.find(region->name);
        if (!found)
            return not_found("version " + std::to_string(kept.key.version) + " has no region \"" + region->name +
                             "\" of rank " + std::to_string(session_.rank_) +
                             ": unprotect it, or restore the others by name");
        TRY(check_fits(*region, *found));
        targets_.push_back(std::make_unique<RestoreTarget>(*region, *found));
        RestoreTarget* const target = targets_.back().get();
        TRY(target->prepare(map));
        out.add(session_.rank_, {found->offset, found->length}, "region " + region->name,
                [target](std::uint64_t at, const Slice& data) { return target->take(at, data.bytes()); }, target->memory());
    }
    return out;
}

Status RestoreRun::fetch(const KeptVersion& kept, bool& refused) {
    refused = false;
    TRY_ASSIGN(const std::unique_ptr<RealWorld> real, session_.open_world());
    World world = real->world();
    const Nanos until = real->loop().now() + static_cast<Nanos>(deadline_.left_ms()) * millisecond;
    const Aim aimed = [&](const ImageInfo& image) { return guarded([&] { return aim(kept, image); }); };
    ImagePlaces places = places_of(kept, session_.rank_);
    places.shared = shared_place(session_.place_, kept, session_.rank_, session_.roster_.incarnation, session_.fetches_);
    const Fetched fetched = real->loop().run(fetch_image(world, session_.layout_, std::move(places), aimed, restore_settings(session_.settings_), until));
    if (!fetched.not_shared.ok()) notes_ += "rank " + std::to_string(session_.rank_) + ": it reads all by itself: " + fetched.not_shared.to_string() + "\n";
    if (fetched.passed_over)
        notes_ += "rank " + std::to_string(session_.rank_) + ": the image in scratch is damaged, taking the committed files: " +
                  fetched.passed_over->to_string() + "\n";
    refused = fetched.refused;
    return fetched.status;
}

// Collective. refused is the same on all ranks.
Status RestoreRun::restore(const KeptVersion& kept, bool& refused) {
    ++session_.fetches_;
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
        refused = refuses || !may_go_back(status);
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
        if (!it->can_be_had()) {
            if (!may_go_back(it->damage)) return not_passed_over(it->damage, version);
            notes_ += version + " is damaged, going back to an older one: " + it->damage.to_string() + "\n";
            last = it->damage;
            continue;
        }
        TRY(session_.check_ranks(*it));
        bool refused = false;
        const Status status = restore(*it, refused);
        if (status.ok()) return &*it;
        if (refused) return not_passed_over(status, version);
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
    if (!kept->can_be_had()) return kept->damage.within(who);
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
    // Not before: until it is on record that this version is gone on from, daemons may think that nobody needs it (catalog/dead.hpp).
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
    if (!kept || !kept->can_be_had())
        return not_found("version " + std::to_string(version) + " of \"" + name_ +
                         "\" is not among those that the last cairn_newest, cairn_list or cairn_restore found");
    TRY(check_ranks(*kept));
    if (kept->image) return kept->image;
    TRY_ASSIGN(const std::unique_ptr<RealWorld> real, open_world());
    World world = real->world();
    const Nanos until = real->loop().now() + static_cast<Nanos>(settings_.deadlines.open_ms) * millisecond;
    TRY_ASSIGN(ImageInfo image, real->loop().run(describe_image(world, layout_, places_of(*kept, rank_), restore_settings(settings_), until)));
    kept->image = std::make_shared<const ImageRegions>(std::move(image));
    return kept->image;
}

}  // namespace cairn
