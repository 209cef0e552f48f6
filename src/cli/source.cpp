#include "cli/source.hpp"

#include "base/text_table.hpp"

namespace cairn::cli {

Status no_rank(const VersionKey& key, std::uint64_t rank, std::uint32_t ranks) {
    return not_found(what(key) + " has no rank " + std::to_string(rank) + "; it was taken by " + plural(ranks, "rank") +
                     ", 0 to " + std::to_string(ranks - 1));
}

namespace {

class Committed final : public Source {
  public:
    Committed(Place& place, OpenVersion version) : place_(place), version_(std::move(version)) {}
    const VersionKey& key() const override { return version_.manifest.key; }
    std::uint32_t ranks() const override { return version_.manifest.ranks; }
    std::uint64_t block_bytes() const override { return version_.manifest.block_bytes; }
    Result<const ImageInfo*> image(Rank rank) const override {
        if (const ImageInfo* image = version_.image(rank)) return image;
        return no_rank(key(), rank, ranks());
    }
    Status read(Rank rank, const ImageRange& range, const ImageSink& sink) override {
        return place_.run(
            restore_image(place_.world(), place_.layout(), version_, rank, {range}, sink, place_.restore()));
    }
    bool has_checksums(Rank) const override { return true; }
    Status settled(Rank) override { return {}; }

  private:
    Place& place_;
    OpenVersion version_;
};

class InScratch final : public Source {
  public:
    InScratch(Place& place, const Seen& seen, LocalImages local)
        : place_(place), key_(seen.key), ranks_(seen.ranks), images_(std::move(local.images)), doubts_(std::move(local.doubts)) {}
    const VersionKey& key() const override { return key_; }
    std::uint32_t ranks() const override { return ranks_; }
    std::uint64_t block_bytes() const override { return images_.begin()->second.header.block_bytes; }
    Result<const ImageInfo*> image(Rank rank) const override {
        const auto found = images_.find(rank);
        if (found != images_.end()) return &found->second.header.image;
        if (rank >= ranks_) return no_rank(key_, rank, ranks_);
        if (const auto doubt = doubts_.find(rank); doubt != doubts_.end())
            return Status(doubt->second).within("the image of rank " + std::to_string(rank) + " of " + what(key_));
        std::vector<Rank> here;
        for (const auto& [each, image] : images_) here.push_back(each);
        return not_found("the image of rank " + std::to_string(rank) + " of " + what(key_) +
                         " is not in this host's scratch, which has " + (here.size() == 1 ? "rank " : "ranks ") +
                         format_ranges(here) +
                         ", and the version is not committed: extract it on the node of that rank, "
                         "or wait until it is committed (`cairn status`)");
    }
    Status read(Rank rank, const ImageRange& range, const ImageSink& sink) override {
        return place_.run(restore_local(place_.world(), images_.at(rank), {range}, sink, place_.restore()))
            .within(what(key_));
    }
    bool has_checksums(Rank rank) const override {
        const LocalImage& image = images_.at(rank);
        return image.data.length == 0 || !image.checksums.empty();
    }
    Status settled(Rank rank) override {
        if (still_there(place_, images_.at(rank))) return {};
        return unavailable("the image of rank " + std::to_string(rank) + " of " + what(key_) +
                           " left scratch while it was read; is the version committed now? (`cairn ls " + key_.name +
                           "`)");
    }

  private:
    Place& place_;
    VersionKey key_;
    std::uint32_t ranks_;
    std::map<Rank, LocalImage> images_;
    std::map<Rank, Status> doubts_;
};

}  // namespace

Result<LocalImages> local_images(Place& place, const ScratchView& scratch, const VersionKey& key) {
    LocalImages local;
    for (const ScratchView::Image& seen : scratch.images) {
        if (seen.key != key) continue;
        if (!seen.doubt.ok()) {
            local.doubts.emplace(seen.rank, seen.doubt);
            continue;
        }
        TRY_ASSIGN(std::optional<LocalImage> image, place.run(read_image(place.world(), seen.path, place.deadline())));
        if (image && image->header.key == key && image->header.rank == seen.rank)
            local.images.emplace(seen.rank, std::move(*image));
    }
    for (const auto& [rank, image] : local.images) local.doubts.erase(rank);
    return local;
}

bool still_there(Place& place, const LocalImage& image) {
    const auto now = place.run(read_image(place.world(), image.path, place.deadline()));
    return now.ok() && now->has_value() && (*now)->header.key == image.header.key &&
           (*now)->header.rank == image.header.rank;
}

Result<std::unique_ptr<Source>> open_source(Place& place, const ScratchView& scratch, const Seen& seen, Rank rank) {
    if (seen.state == SeenState::committed) {
        TRY_ASSIGN(OpenVersion version,
                   place.run(open_version(place.world(), place.layout(), *seen.entry.manifest, rank, place.restore())));
        return std::unique_ptr<Source>(std::make_unique<Committed>(place, std::move(version)));
    }
    TRY_ASSIGN(LocalImages local, local_images(place, scratch, seen.key));
    if (local.images.empty() && !local.doubts.empty()) return Status(local.doubts.begin()->second).within(what(seen.key));
    if (local.images.empty())
        return unavailable("the images of " + what(seen.key) + " left scratch just now; try again (`cairn ls " +
                           seen.key.name + "`)");
    return std::unique_ptr<Source>(std::make_unique<InScratch>(place, seen, std::move(local)));
}

}  // namespace cairn::cli
