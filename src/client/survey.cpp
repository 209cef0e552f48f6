// Survey: which versions all ranks can go back to. Each rank looks into its node's scratch, rank 0 alone into the
// persistent directory (one reader, however many ranks); two exchanges later everybody knows the same list.
#include <algorithm>
#include <set>

#include "client/packer.hpp"
#include "client/session.hpp"
#include "world/real/world.hpp"

namespace cairn {

namespace {

using Entries = std::vector<control::ImageList::Entry>;

void pack_entries(Packer& packer, const Entries& images) {
    packer.number<std::uint64_t>(images.size());
    for (const auto& each : images)
        packer.id(each.key.incarnation)
            .number(each.key.version)
            .number(each.epoch)
            .id(each.parent.incarnation)
            .number(each.parent.version)
            .number(each.bytes)
            .number(each.rank)
            .number(each.ranks);
}

Entries unpack_entries(Unpacker& unpacker) {
    Entries images;
    const auto count = unpacker.number<std::uint64_t>();
    for (std::uint64_t i = 0; i < count && unpacker.ok(); ++i) {
        control::ImageList::Entry& image = images.emplace_back();
        image.key.incarnation = unpacker.id();
        image.key.version = unpacker.number<std::uint64_t>();
        image.epoch = unpacker.number<std::uint64_t>();
        image.parent.incarnation = unpacker.id();
        image.parent.version = unpacker.number<std::uint64_t>();
        image.bytes = unpacker.number<std::uint64_t>();
        image.rank = unpacker.number<Rank>();
        image.ranks = unpacker.number<std::uint32_t>();
    }
    return images;
}

// Images by version, with how many ranks hold it and their bytes.
struct SealedSet {
    SealedVersion version;
    std::set<Rank> ranks;
    std::uint64_t bytes = 0;
};
using SealedSets = std::map<std::pair<Version, Id128>, SealedSet>;

Status add_images(const Bytes& packed, Rank rank, SealedSets& sets) {
    Unpacker unpacker(packed);
    TRY(unpacker.status());
    for (const auto& image : unpack_entries(unpacker)) {
        SealedSet& set = sets[{image.key.version, image.key.incarnation}];
        set.version = {image.key.incarnation, image.epoch, image.key.version, image.parent};
        set.bytes += image.bytes;
        set.ranks.insert(rank);
    }
    return unpacker.ok() ? Status() : Status(Code::internal, "a list of images that can not be read");
}

std::vector<KeptVersion> unpack_kept(Unpacker& unpacker, const std::string& name) {
    std::vector<KeptVersion> kept;
    const auto count = unpacker.number<std::uint64_t>();
    for (std::uint64_t i = 0; i < count && unpacker.ok(); ++i) {
        KeptVersion each;
        each.key.name = name;
        each.key.version = unpacker.number<std::uint64_t>();
        each.key.incarnation = unpacker.id();
        each.epoch = unpacker.number<std::uint64_t>();
        each.ranks = unpacker.number<std::uint32_t>();
        each.bytes = unpacker.number<std::uint64_t>();
        each.committed = unpacker.number<std::uint8_t>() != 0;
        each.sealed = unpacker.number<std::uint8_t>() != 0;
        each.damage = unpacker.status();
        kept.push_back(std::move(each));
    }
    return kept;
}

}  // namespace

// What a rank's node has in scratch. Its first rank tells of what is not the present ranks', too: left by a job of another size or order.
struct Session::LocalImages {
    Entries own, others;
    bool all = true;  // there may be no more

    static Bytes pack(const Result<LocalImages>& images) {
        Packer packer;
        packer.status(images.status());
        if (!images.ok()) return packer.take();
        pack_entries(packer, images->own);
        packer.number<std::uint8_t>(images->all);
        pack_entries(packer, images->others);
        return packer.take();
    }
};

// Of this session, on this node; increasing.
std::vector<Rank> Session::ranks_here() const {
    const auto here = std::find_if(members_.begin(), members_.end(), [&](const Member& member) { return member.node == node_; });
    return here == members_.end() ? std::vector<Rank>{rank_} : here->ranks;
}

// Sealed images on this node. Their slots stay put until Unpin.
Result<Session::LocalImages> Session::local_images(Deadline deadline) {
    TRY_ASSIGN(control::ImageList list, daemon_->ask_for<control::ImageList>(control::Images{name_}, deadline));
    // One each: a rank counts once.
    const auto less = [](const auto& a, const auto& b) { return std::tie(a.key, a.rank) < std::tie(b.key, b.rank); };
    const auto same = [](const auto& a, const auto& b) { return std::tie(a.key, a.rank) == std::tie(b.key, b.rank); };
    std::sort(list.images.begin(), list.images.end(), less);
    list.images.erase(std::unique(list.images.begin(), list.images.end(), same), list.images.end());
    const std::vector<Rank> ranks = ranks_here();
    LocalImages images;
    images.all = !list.unread;
    for (auto& each : list.images) {
        if (each.key.name != name_) continue;
        const bool present = each.ranks == ranks_ && std::find(ranks.begin(), ranks.end(), each.rank) != ranks.end();
        if (present && each.rank == rank_) images.own.push_back(std::move(each));
        else if (!present && rank_ == ranks.front()) images.others.push_back(std::move(each));
    }
    return images;
}

// Rank 0 alone: of which versions the nodes together hold all images, wherever each lies.
void Session::note_whole(const std::vector<Bytes>& all) {
    std::map<std::pair<Id128, Version>, std::pair<std::uint32_t, std::set<Rank>>> found;
    looked_ = true;
    whole_.clear();
    for (const Bytes& packed : all) {
        Unpacker unpacker(packed);
        looked_ &= unpacker.status().ok();
        Entries images = unpack_entries(unpacker);
        looked_ &= unpacker.number<std::uint8_t>() != 0;
        for (auto& each : unpack_entries(unpacker)) images.push_back(std::move(each));
        for (const auto& each : images) {
            auto& [ranks, holders] = found[{each.key.incarnation, each.key.version}];
            ranks = each.ranks;
            holders.insert(each.rank);
        }
        looked_ &= unpacker.ok();
    }
    for (const auto& [version, held] : found)
        if (held.first == held.second.size()) whole_.push_back({version.first, version.second});
}

// What is on record of the look before it (catalog/dead.hpp).
FromRecord Session::from_record(Id128 incarnation, const Parent& parent) const {
    constexpr std::size_t most = 10'000;  // records are small; whoever holds more knows nothing of any
    const bool looked = looked_ && whole_.size() <= most;
    return {incarnation, parent, looked, looked ? whole_ : std::vector<Parent>()};
}

// Rank 0 alone.
Bytes Session::look_at_persistent(const std::vector<SealedVersion>& sealed, Deadline deadline) {
    const auto look = [&]() -> Result<RestorableSeries> {
        TRY_ASSIGN(const std::unique_ptr<RealWorld> real, open_world());
        World world = real->world();
        const Nanos until = real->loop().now() + static_cast<Nanos>(deadline.left_ms()) * millisecond;
        return real->loop().run(load_restorable(world, layout_, name_, sealed, roster_.incarnation, until));
    };
    const auto found = look();
    Packer packer;
    packer.status(found.status());
    if (!found.ok()) return packer.take();
    std::string notes;
    for (const Status& each : found->passed_over) notes += each.text() + "\n";
    if (!found->tail.ok()) notes += found->tail.text() + "\n";
    packer.status(found->tail).text(notes).number<std::uint64_t>(found->versions.size());
    for (const RestorableVersion& each : found->versions)
        packer.number(each.key.version)
            .id(each.key.incarnation)
            .number(each.epoch)
            .number(each.ranks)
            .number(each.bytes)
            .number<std::uint8_t>(each.committed)
            .number<std::uint8_t>(each.sealed)
            .status(each.damage);
    return packer.take();
}

Status Session::survey(Deadline deadline) {
    const auto images = local_images(deadline);
    TRY_ASSIGN(const std::vector<Bytes> all, exchange_->allgather(LocalImages::pack(images), deadline));
    looked_ = false;
    SealedSets sets;
    for (Rank rank = 0; rank < all.size(); ++rank)
        TRY(add_images(all[rank], rank, sets).within("rank " + std::to_string(rank)));
    if (rank_ == 0) note_whole(all);
    std::vector<SealedVersion> sealed;
    for (auto& [key, set] : sets) {
        set.version.is_whole = set.ranks.size() == ranks_;
        sealed.push_back(set.version);
    }

    Bytes mine;
    if (rank_ == 0) mine = look_at_persistent(sealed, deadline.early());
    TRY_ASSIGN(const Bytes said, exchange_->broadcast(mine, deadline));
    Unpacker unpacker(said);
    TRY(unpacker.status().within("looking for versions of \"" + name_ + "\""));
    Status tail = unpacker.status();
    std::string notes = unpacker.text();
    std::vector<KeptVersion> kept = unpack_kept(unpacker, name_);
    if (!unpacker.ok()) return {Code::internal, "rank 0 sent a list of versions that can not be read"};
    const std::vector<Rank> here = ranks_here();
    for (KeptVersion& each : kept) {
        if (each.sealed) each.ranks = ranks_;
        const auto set = sets.find({each.key.version, each.key.incarnation});
        if (each.sealed && !each.committed && set != sets.end()) each.bytes = set->second.bytes;
        each.from_parts = here;
        if (set != sets.end()) std::erase_if(each.from_parts, [&](Rank rank) { return set->second.ranks.count(rank) != 0; });
        for (const auto& image : images->own)
            if (image.key == each.key) each.local_path = image.path;
    }
    kept_ = std::move(kept);
    kept_tail_ = std::move(tail);
    kept_notes_ = std::move(notes);
    return {};
}

const KeptVersion* Session::find_kept(Version version) const {
    for (auto it = kept_.rbegin(); it != kept_.rend(); ++it)
        if (version == CAIRN_NEWEST ? it->can_be_had() : it->key.version == version) return &*it;
    return nullptr;
}

Status Session::check_ranks(const KeptVersion& kept) const {
    if (kept.ranks == ranks_ || !kept.committed) return {};
    return invalid_argument("version " + std::to_string(kept.key.version) + " of \"" + name_ + "\" was taken by " +
                            std::to_string(kept.ranks) + " ranks, this session has " + std::to_string(ranks_) +
                            ": run with " + std::to_string(kept.ranks));
}

Result<std::vector<KeptVersion>> Session::list() {
    const Deadline deadline = Deadline::in_ms(settings_.deadlines.open_ms);
    const Status surveyed = survey(deadline);
    static_cast<void>(daemon_->ask_for<control::Done>(control::Unpin{}, deadline));
    TRY(exchange_->agree(surveyed, deadline));
    std::vector<KeptVersion> whole;
    for (const KeptVersion& each : kept_)
        if (each.can_be_had()) whole.push_back(each);
    if (whole.empty()) TRY(kept_tail_);  // "none" would mean that one may begin anew
    return whole;
}

Result<Version> Session::newest_not_above(Version limit) {
    TRY_ASSIGN(const std::vector<KeptVersion> whole, list());
    for (auto it = whole.rbegin(); it != whole.rend(); ++it) {
        if (it->key.version > limit) continue;
        TRY(check_ranks(*it));
        return it->key.version;
    }
    TRY(kept_tail_);
    return not_found("no version of \"" + name_ + "\"" +
                     (limit == CAIRN_NEWEST ? "" : " up to " + std::to_string(limit)) +
                     " can be restored by all ranks");
}

}  // namespace cairn
