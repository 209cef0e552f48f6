// Bases are opened for the ranks that need them, and read for one run after the other. Who reads a base holds memory for the run that needs it, and waits for no more than memory of the base's own
// encoded runs (EncodedRuns::of_base), which nobody holds who waits for anything else.
#include "copies/bases.hpp"

#include <algorithm>

#include "catalog/manifest_lookup.hpp"

namespace cairn {

namespace {

std::string needs_text(Version version) { return "needs version " + std::to_string(version) + ", its base"; }

std::uint32_t place_of(const OpenVersion& version, const Footer& footer, const StoredRun& run) {
    const std::vector<BaseVersion>& bases = version.manifest.bases;
    return static_cast<std::uint32_t>(std::find(bases.begin(), bases.end(), footer.bases[run.base - 1].of) - bases.begin());
}

// Whose images are needed, by place among the manifest's bases.
std::map<std::uint32_t, std::set<Rank>> needed_by(const OpenVersion& version, const std::set<Rank>* ranks) {
    std::map<std::uint32_t, std::set<Rank>> needed;
    for (std::size_t i = 0; i < version.footers.size(); ++i) {
        const Footer& footer = version.footers[i];
        const auto is_wanted = [&](const StoredPiece& piece) { return (!ranks || ranks->count(piece.rank) != 0) && version.holds(i, piece.rank); };
        for (const StoredRun& run : footer.runs) {
            if (!has_known_base(footer, run) || std::none_of(run.pieces.begin(), run.pieces.end(), is_wanted)) continue;
            std::set<Rank>& of_base = needed[place_of(version, footer, run)];
            for (const StoredPiece& piece : run.pieces) of_base.insert(piece.rank);
        }
    }
    return needed;
}

Task<std::shared_ptr<const OpenedBase>> open_base(World& world, Layout layout, VersionKey key, std::set<Rank> ranks, RestoreSettings settings) {
    auto base = std::make_shared<OpenedBase>();
    base->ranks = std::move(ranks);
    const Nanos deadline = world.clock.in(settings.io_wait);
    Task<Result<Manifest>> reading = base->ranks.size() == 1 ? read_manifest_of(world, layout, key, *base->ranks.begin(), deadline) : read_manifest(world, layout, key, deadline);
    Result<Manifest> manifest = co_await reading;
    base->status = manifest.status();
    if (manifest.code() == Code::not_found) base->status = corrupt("it is not there any more");  // another version may do
    if (manifest.ok() && manifest->abandoned) base->status = corrupt("it was given up or removed");
    if (base->status.ok()) {
        base->version.manifest = std::move(manifest).value();
        base->status = co_await open_parts(world, std::move(layout), base->version, &base->ranks, settings);
    }
    for (const Rank rank : base->ranks)
        if (base->status.ok() && base->version.image(rank)) base->status = check_tiling(base->version, rank);  // once: of each run only its own pieces are looked at
    if (!base->status.ok()) base->status = std::move(base->status).within(needs_text(key.version));
    co_return base;
}

// Where the bytes go that a read of a base delivers: to the pieces of the run that they are the older bytes of.
class OlderPieces {
  public:
    explicit OlderPieces(const StoredRun& run) {
        for (const StoredPiece& piece : run.pieces) sorted_.push_back(&piece);
        std::sort(sorted_.begin(), sorted_.end(), [](const StoredPiece* a, const StoredPiece* b) { return place(*a) < place(*b); });
    }
    struct Copy {
        Slice from, to;
    };
    // In the run's raw bytes.
    void add(Rank rank, std::uint64_t offset, const Slice& data, const Slice& into) {
        const std::uint64_t end = offset + data.length;
        auto at = std::partition_point(sorted_.begin(), sorted_.end(), [&](const StoredPiece* piece) { return std::pair(piece->rank, piece->image_offset + piece->length) <= std::pair(rank, offset); });
        for (; at != sorted_.end() && (*at)->rank == rank && (*at)->image_offset < end; ++at) {
            const StoredPiece& piece = **at;
            const std::uint64_t first = std::max(offset, piece.image_offset), last = std::min(end, piece.image_offset + piece.length);
            copies_.push_back({data.part(first - offset, last - first), into.part(piece.at + first - piece.image_offset, last - first)});
            copied_ += last - first;
        }
    }
    std::vector<Copy> take() { return std::exchange(copies_, {}); }
    std::uint64_t copied() const { return copied_; }

  private:
    static std::pair<Rank, std::uint64_t> place(const StoredPiece& piece) { return {piece.rank, piece.image_offset}; }
    std::vector<const StoredPiece*> sorted_;  // none of an image overlap
    std::vector<Copy> copies_;
    std::uint64_t copied_ = 0;
};

Task<Status> copy_all(ReadSource& of, std::vector<OlderPieces::Copy> copies) {
    for (OlderPieces::Copy& copy : copies) {
        const Nanos deadline = of.world.clock.in(of.settings.io_wait);
        const Result<Encoded> copied = co_await of.world.cpu.encode(Coding(Codec::none), std::move(copy.from), BaseBytes(), nothing_known, std::move(copy.to), deadline);
        if (!copied.ok()) co_return copied.status();
    }
    co_return Status();
}

// Of which ranks which bytes.
Result<std::vector<WantedImage>> wanted_of(const OpenVersion& base, const StoredRun& run) {
    std::map<Rank, std::vector<ImageRange>> ranges;
    for (const StoredPiece& piece : run.pieces) {
        const ImageInfo* const image = base.image(piece.rank);
        if (!image) return corrupt("it has no image of rank " + std::to_string(piece.rank));
        if (piece.image_offset + piece.length > image->bytes)
            return corrupt("its image of rank " + std::to_string(piece.rank) + " has " + std::to_string(image->bytes) + " bytes, and those up to " + std::to_string(piece.image_offset + piece.length) + " are needed");
        ranges[piece.rank].push_back({piece.image_offset, piece.length});
    }
    std::vector<WantedImage> wanted;
    for (auto& [rank, of_rank] : ranges) wanted.push_back({rank, std::move(of_rank)});
    return wanted;
}

Result<std::vector<PartRead>> reads_of(const OpenVersion& base, const StoredRun& run, std::uint64_t buffer_bytes) {
    TRY_ASSIGN(const std::vector<WantedImage> wanted, wanted_of(base, run));
    TRY_ASSIGN(std::vector<PartRead> reads, plan_part_reads(base, wanted, buffer_bytes, true));
    for (const PartRead& read : reads)
        if (run_of(base, read).base != 0) return Status(Code::unsupported, "it has a base itself, and this Cairn reads no more than two versions for one: read it with a newer one");
    return reads;
}

}  // namespace

bool has_known_base(const Footer& footer, const StoredRun& run) {
    if (run.base == 0) return false;
    const CodecName& name = footer.codecs[run.codec - 1];
    const BaseRun& base = footer.bases[run.base - 1];
    const std::optional<Codec> codec = codec_of(name.name, name.parameters);
    return codec && takes_base(*codec) && base.part == 0 && base.part_offset == 0;
}

Task<void> open_bases(World& world, Layout layout, OpenVersion& version, const std::set<Rank>* ranks, RestoreSettings settings) {
    const std::map<std::uint32_t, std::set<Rank>> needed = needed_by(version, ranks);
    for (const auto& [place, of_base] : needed) {
        const BaseVersion& base = version.manifest.bases[place];
        const VersionKey key{version.manifest.key.name, base.version, base.incarnation};
        std::shared_ptr<const OpenedBase> opened = co_await open_base(world, layout, key, of_base, settings);
        version.bases.emplace(place, std::move(opened));
    }
}

Result<BaseReads> plan_base(Reading& r, const PartRead& read, std::uint64_t buffer_bytes) {
    const OpenVersion& version = r.of.version;
    const Footer& footer = version.footers[read.footer];
    const StoredRun& run = run_of(version, read);
    BaseReads base;
    if (!has_known_base(footer, run)) return base;
    const std::uint32_t place = place_of(version, footer, run);
    const auto base_of_it = version.bases.find(place);
    std::uint64_t end = 0;
    for (const StoredPiece& piece : run.pieces) {
        if (piece.at != end) return corrupt("it has a base, and two of its pieces share bytes");
        if (base_of_it == version.bases.end() || base_of_it->second->ranks.count(piece.rank) == 0) return Status(Code::internal, "rank " + std::to_string(piece.rank) + " was not opened with its base; a defect in Cairn, please report it");
        end += piece.length;
    }
    const OpenedBase& opened = *base_of_it->second;
    TRY(Status(opened.status));
    Result<std::vector<PartRead>> reads = reads_of(opened.version, run, buffer_bytes);
    if (!reads.ok()) return std::move(reads).status().within(needs_text(opened.version.manifest.key.version));
    std::shared_ptr<ReadSource>& from = r.of.bases[place];
    if (!from) from.reset(new ReadSource{r.of.world, r.of.layout, r.of.settings, opened.version, r.of.encoded.of_base(), place + 1});
    base.from = from.get();
    base.reads = std::move(reads).value();
    return base;
}

// Who reads on afterwards takes what all of its image needs: others may have made that ready meanwhile, and want the shelves.
void share_bases(Reading& r, std::uint64_t buffer_bytes) {
    SharedRuns* const node = r.of.encoded.node();
    if (!node || r.of.version.manifest.bases.empty()) return;
    r.of.shared = std::make_shared<SharedBases>(r.of.world, *node, r.of.encoded.of_base(), 3 * r.of.settings.io_wait);
    const bool is_last = std::none_of(r.reads.begin(), r.reads.end(), [](const PartRead& read) { return read.is_wanted_again; });
    std::vector<PartRead> reads = r.reads;
    if (!is_last) {
        Result<std::vector<PartRead>> all = plan_part_reads(r.of.version, {{node->self(), {}}}, buffer_bytes);
        if (all.ok()) reads = std::move(all).value();
    }
    for (const PartRead& read : reads) {
        if (r.of.encoded.keeps({read.footer, read.run})) continue;
        const Result<BaseReads> base = plan_base(r, read, buffer_bytes);
        if (base.ok() && base->from) r.of.shared->need({read.footer, read.run}, *base->from, base->reads);
    }
}

std::uint64_t buffer_bytes_of_bases(const ReadSource& of) {
    constexpr std::uint64_t enough = 8ull << 20;
    std::uint64_t bytes = 0;
    for (const auto& [place, base] : of.version.bases) bytes = std::max({bytes, base->version.manifest.block_bytes, std::min(enough, of.settings.buffer_bytes)});
    return bytes;
}

Task<RunOutcome> read_base(Reading& r, const PartRead& of, BaseReads base, BufferPtr buffer, std::optional<Slice> into) {
    const OpenVersion& version = base.from->version;
    const std::string needs = needs_text(version.manifest.key.version);
    Status opened = co_await open_files(*base.from, base.reads);
    if (!opened.ok()) co_return RunOutcome{std::move(opened).within(needs), true};
    OlderPieces pieces(run_of(r.of.version, of));
    bool is_told = false;
    Reading nested{*base.from, std::move(base.reads), {}, {}};
    nested.deliver = [&](const StoredPiece& piece, std::uint64_t at, const Slice& data) {
        if (into) pieces.add(piece.rank, piece.image_offset + at, data, *into);
        return Status();
    };
    nested.bad = [&](const PartRead& read, const StoredPiece& piece, ImageRange unit, Status status) {
        is_told = true;
        return std::move(status).within(place_text(version, read, piece, unit)).within(needs);
    };
    if (r.stored_is_right) nested.stored_is_right = [](std::uint64_t) {};
    SharedBases* const shared = r.of.shared.get();
    while (!nested.reads.empty()) {
        SharedBases::Next next;  // the first of them
        if (shared) {
            const std::optional<SharedBases::Next> found = co_await shared->next(*base.from, nested.reads, r.failure);
            if (!found) co_return RunOutcome{Status(r.failure), false};  // another reader's
            next = *found;
        }
        const PartRead read = nested.reads[next.index];
        nested.reads.erase(nested.reads.begin() + static_cast<std::ptrdiff_t>(next.index));
        Task<Status> reading = next.run ? read_base_run(nested, read, *shared, next, buffer) : read_run(nested, read, buffer);
        Status status = co_await reading;
        if (next.run) shared->ended(next);
        if (!status.ok()) co_return RunOutcome{std::move(status), is_told};
        std::vector<OlderPieces::Copy> copies = pieces.take();
        Status copied = co_await copy_all(*base.from, std::move(copies));
        if (!copied.ok()) co_return RunOutcome{std::move(copied).within(needs), false};
    }
    if (into && pieces.copied() != into->length) co_return RunOutcome{Status(Code::internal, needs + ": not all bytes of it were read; a defect in Cairn, please report it"), false};
    co_return RunOutcome{};
}

}  // namespace cairn
