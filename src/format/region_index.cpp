// Names increase from the first region of an index to the last, which also keeps a hostile index from leading to one page twice.
#include "format/region_index.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "format/check.hpp"
#include "format/fields.hpp"
#include "region_index_generated.h"

namespace cairn {

using check::refuse;

namespace {

constexpr char end_magic[8] = {'C', 'A', 'I', 'R', 'N', 'r', 'e', 'g'};

// A page of one level that was written, as the level above names it.
struct Written {
    std::string first_name;
    IndexPage page;
};

class IndexWriter {
  public:
    void regions_page(const std::vector<const Region*>& regions) {
        Writer writer;
        const auto offsets = writer.tables(regions, [&](const Region* region) { return writer.region(*region); });
        fb::FinishRegionPageBuffer(writer.builder, fb::CreateRegionPage(writer.builder, offsets, 0));
        append(writer, regions.front()->name);
    }
    void directory_page(const std::vector<Written>& below) {
        Writer writer;
        const auto offsets = writer.tables(below, [&](const Written& each) {
            return fb::CreatePageRef(writer.builder, writer.string(each.first_name), each.page.offset, each.page.length);
        });
        fb::FinishRegionPageBuffer(writer.builder, fb::CreateRegionPage(writer.builder, 0, offsets));
        append(writer, below.front().first_name);
    }
    std::vector<Written> take_level() { return std::exchange(level_, {}); }
    RegionIndex finish(std::uint64_t regions) {
        const std::uint64_t end[3] = {index_.pages.back().offset, index_.pages.back().length, regions};
        const ByteView words = std::as_bytes(std::span(end)), magic = std::as_bytes(std::span(end_magic));
        index_.bytes.insert(index_.bytes.end(), words.begin(), words.end());
        index_.bytes.insert(index_.bytes.end(), magic.begin(), magic.end());
        index_.pages.back().length += region_index_end_bytes;
        return std::move(index_);
    }

  private:
    void append(const Writer& writer, const std::string& first_name) {
        const ByteView page = writer.bytes();
        const IndexPage at{index_.bytes.size(), round_up(page.size(), 8)};
        index_.bytes.insert(index_.bytes.end(), page.begin(), page.end());
        index_.bytes.resize(at.offset + at.length);
        index_.pages.push_back(at);
        level_.push_back({first_name, at});
    }

    RegionIndex index_;
    std::vector<Written> level_;
};

// Bytes that these take in a page at most, with what points at them.
std::uint64_t encoded_bytes(const Region* region) { return check::encoded_bytes(*region); }
std::uint64_t encoded_bytes(const Written& page) { return 64 + page.first_name.size(); }

// Runs of items that fill a page each.
template <class Item, class Write>
void in_pages(const std::vector<Item>& items, std::uint64_t page_bytes, Write write) {
    std::vector<Item> page;
    std::uint64_t bytes = 0;
    for (const Item& item : items) {
        const std::uint64_t more = encoded_bytes(item);
        if (!page.empty() && bytes + more > page_bytes - 64) {
            write(page);
            page.clear();
            bytes = 0;
        }
        page.push_back(item);
        bytes += more;
    }
    write(page);
}

// A page, copied to where FlatBuffers may look at it.
class Page {
  public:
    explicit Page(ByteView page) : bytes_(page.begin(), page.end()), root_(verified_root<fb::RegionPage>(bytes_, fb::RegionPageIdentifier())) {}
    Page(const Page&) = delete;

    Status check(const IndexPage& at) const {
        if (!root_ || (regions() == 0) == (below() == 0)) return refuse("region index: its page at ", at.offset, " is not one");
        return {};
    }
    std::uint32_t regions() const { return root_->regions() ? root_->regions()->size() : 0; }
    std::uint32_t below() const { return root_->below() ? root_->below()->size() : 0; }
    std::string_view region_name(std::uint32_t i) const { return root_->regions()->Get(i)->name()->string_view(); }
    std::string_view first_name(std::uint32_t i) const { return root_->below()->Get(i)->first_name()->string_view(); }
    Result<Region> region(std::uint32_t i, std::uint64_t data_bytes) const {
        Reader reader(bytes_.size());
        Region region = reader.region(*root_->regions()->Get(i));
        if (reader.exhausted()) return corrupt("region index: a region unpacks to more than its page holds");
        TRY(check::region(region, data_bytes));
        return region;
    }
    Result<IndexPage> page_below(std::uint32_t i, const IndexPage& at) const {
        const fb::PageRef& ref = *root_->below()->Get(i);
        const IndexPage page{ref.offset(), ref.length()};
        if (page.length > 0 && page.length <= record_bytes_max && page.offset % 8 == 0 && page.length % 8 == 0 && page.length <= at.offset && page.offset <= at.offset - page.length) return page;
        return refuse("region index: its page at ", at.offset, " names one at ", page.offset, " of ", page.length, " bytes");
    }

  private:
    Bytes bytes_;
    const fb::RegionPage* root_;
};

// How many of the first `count` names are not behind this one.
template <class NameOf>
std::uint32_t not_behind(std::uint32_t count, std::string_view name, NameOf name_of) {
    std::uint32_t low = 0, high = count;
    while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (name_of(middle) <= name) low = middle + 1;
        else high = middle;
    }
    return low;
}

// `left`: bytes of pages that may still be looked at. Pages that overlap would be looked at for far more bytes than there are.
Status take_page(ByteView index, const IndexPage& at, int level, std::uint64_t data_bytes, std::uint64_t& left, std::vector<Region>& regions) {
    if (level == region_index_levels_max) return refuse("region index: more than ", region_index_levels_max, " levels of pages");
    if (at.length > left) return corrupt("region index: its pages lie one over the other");
    left -= at.length;
    const Page page(index.subspan(at.offset, at.length));
    TRY(page.check(at));
    for (std::uint32_t i = 0; i < page.regions(); ++i) {
        TRY_ASSIGN(Region region, page.region(i, data_bytes));
        if (!regions.empty() && regions.back().name >= region.name) return refuse("region index: '", region.name, "' is not behind '", regions.back().name, "'");
        regions.push_back(std::move(region));
    }
    for (std::uint32_t i = 0; i < page.below(); ++i) {
        TRY_ASSIGN(const IndexPage below, page.page_below(i, at));
        const std::size_t before = regions.size();
        TRY(take_page(index, below, level + 1, data_bytes, left, regions));
        if (regions[before].name != page.first_name(i)) return refuse("region index: its page at ", below.offset, " begins with another name than is said of it");
    }
    return {};
}

}  // namespace

RegionIndex encode_region_index(const std::vector<Region>& regions) {
    if (regions.empty()) return {};
    std::vector<const Region*> by_name(regions.size());
    std::transform(regions.begin(), regions.end(), by_name.begin(), [](const Region& region) { return &region; });
    std::sort(by_name.begin(), by_name.end(), [](const Region* a, const Region* b) { return a->name < b->name; });
    IndexWriter writer;
    in_pages(by_name, region_page_bytes, [&](const std::vector<const Region*>& page) { writer.regions_page(page); });
    // A page of one region that is described by many arrays is longer than the topmost may be.
    for (std::vector<Written> level = writer.take_level(); level.size() > 1 || level.front().page.length > directory_page_bytes; level = writer.take_level())
        in_pages(level, directory_page_bytes, [&](const std::vector<Written>& page) { writer.directory_page(page); });
    return writer.finish(regions.size());
}

Result<IndexRoot> decode_region_index_end(ByteView end, std::uint64_t index_bytes) {
    std::uint64_t words[3] = {};
    if (end.size() != region_index_end_bytes || index_bytes < region_index_end_bytes || std::memcmp(end.data() + sizeof words, end_magic, sizeof end_magic) != 0)
        return corrupt("region index: it does not end as one");
    std::memcpy(words, end.data(), sizeof words);
    const IndexRoot root{{words[0], words[1]}, words[2]};
    const std::uint64_t pages = index_bytes - region_index_end_bytes;
    const bool is_page = root.page.length > 0 && root.page.length <= directory_page_bytes && root.page.length <= pages && root.page.length % 8 == 0 && pages % 8 == 0;
    if (!is_page || root.page.offset != pages - root.page.length || root.regions == 0)
        return refuse("region index: ", index_bytes, " bytes with the topmost page at ", root.page.offset, " can not be");
    return root;
}

Result<InPage> find_in_page(ByteView bytes, const IndexPage& at, std::string_view name, std::uint64_t data_bytes) {
    const Page page(bytes);
    TRY(page.check(at));
    InPage found;
    if (page.regions() > 0) {
        const std::uint32_t count = not_behind(page.regions(), name, [&](std::uint32_t i) { return page.region_name(i); });
        if (count == 0 || page.region_name(count - 1) != name) return found;
        TRY_ASSIGN(found.region, page.region(count - 1, data_bytes));
        return found;
    }
    const std::uint32_t count = not_behind(page.below(), name, [&](std::uint32_t i) { return page.first_name(i); });
    if (count == 0) return found;
    TRY_ASSIGN(found.below, page.page_below(count - 1, at));
    return found;
}

Result<std::vector<Region>> decode_region_index(ByteView index, std::uint64_t data_bytes) {
    if (index.size() < region_index_end_bytes) return corrupt("region index: too short to be one");
    TRY_ASSIGN(const IndexRoot root, decode_region_index_end(index.last(region_index_end_bytes), index.size()));
    std::vector<Region> regions;
    std::uint64_t left = index.size();
    TRY(take_page(index, root.page, 0, data_bytes, left, regions));
    if (regions.size() != root.regions) return refuse("region index: it has ", regions.size(), " regions, and says ", root.regions);
    std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return std::tie(a.offset, a.length, a.name) < std::tie(b.offset, b.length, b.name); });
    return regions;
}

}  // namespace cairn
