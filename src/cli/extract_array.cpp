#include "cli/extract_array.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <ostream>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/extract_trees.hpp"
#include "describe/file.hpp"
#include "describe/formats.hpp"
#include "describer/describer.hpp"
#include "describer/rules_file.hpp"
#include "read/plan.hpp"
#include "world/real/memory.hpp"

namespace cairn::cli {

namespace {

constexpr std::uint64_t fronts_bytes[] = {64 << 10, 16 << 20};  // where a header stands at the front of a file it is nearly always in the first, and in the second that of a model of a hundred thousand tensors

Status refused(const std::string& what) { return Status::from_errno(errno, what + " (TMPDIR names another place)"); }

// Bytes of one region, in a file without a name: as long as it, and of what was not read zeros.
class RegionCopy {
  public:
    static Result<RegionCopy> make(std::uint64_t bytes) {
        std::error_code error;
        const std::string folder = std::filesystem::temp_directory_path(error).string();
        std::string path = folder + "/cairn-array-XXXXXX";
        if (error) return Status(Code::io_error, "there is no folder for the file that is described (TMPDIR names one): " + error.message());
        RegionCopy copy;
        copy.descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
        if (copy.descriptor_ < 0) return refused("cannot make " + path);
        ::unlink(path.c_str());
        if (::ftruncate(copy.descriptor_, static_cast<off_t>(bytes)) != 0) return refused("cannot make a file of " + format_bytes(bytes) + " in " + folder);
        return copy;
    }
    RegionCopy(RegionCopy&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    RegionCopy& operator=(RegionCopy&&) = delete;
    ~RegionCopy() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    // As another process of this user finds it.
    std::string path() const { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(descriptor_); }
    Status write_at(std::uint64_t offset, ByteView bytes) const {
        while (!bytes.empty()) {
            const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) return refused("cannot write the file that is described");
            offset += static_cast<std::uint64_t>(written);
            bytes = bytes.subspan(static_cast<std::size_t>(written));
        }
        return {};
    }

  private:
    RegionCopy() = default;
    int descriptor_ = -1;
};

Status read_into(const RegionCopy& copy, Place& place, const VersionCopies& copies, Rank rank, const Region& region, std::uint64_t bytes, ReadCost& cost) {
    HandOut out;
    out.add(rank, {region.offset, bytes}, "region " + region.name, [&](std::uint64_t at, const Slice& data) { return copy.write_at(at, data.bytes()); });
    TRY_ASSIGN(ReadPlan plan, plan_reads(copies, out.wanted(), place.restore().buffer_bytes));
    if (copies.parts) cost.add(cost_of(*copies.parts, plan.parts));
    return read_by_plan(place, copies, std::move(plan), out);
}

Result<Description> describe(const RegionCopy& copy, const Region& region, const Describers& describers) {
    TRY_ASSIGN(const BufferPtr mapped, map_file(copy.path(), false, [](const std::function<void()>& unmap) { unmap(); }));
    Result<Description> description = describe_file({region.name, ByteView(mapped->data(), mapped->size()), copy.path(), 0, region.described}, describers);
    if (mapped->has_lost_bytes()) return Status(Code::io_error, "the file that is described did not come back as it was written (TMPDIR names another place)");
    return description;
}

Result<bool> says_all_in_front(const RegionCopy& copy) {
    TRY_ASSIGN(const BufferPtr mapped, map_file(copy.path(), false, [](const std::function<void()>& unmap) { unmap(); }));
    const ByteView bytes(mapped->data(), mapped->size());
    return is_npy(bytes) || is_safetensors(bytes);
}

// What is known of it without a look at its bytes.
std::vector<Extent> told_of(const Region& region, const Describers& describers) {
    std::vector<Extent> told;
    for (const DescribedArray& array : region.described)
        if (std::optional<Extent> extent = extent_of(array, region.length)) told.push_back(std::move(*extent));
    told = sound(std::move(told), region.length);
    if (told.empty() && describers.rules && region.kind == RegionKind::file) told = describe_by_rules(*describers.rules, region.name, region.length);
    return told;
}

Result<std::vector<Extent>> arrays_in(Console& console, Place& place, const VersionCopies& copies, Rank rank, const Region& region, const Describers& describers, ReadCost& cost) {
    std::vector<Extent> told = told_of(region, describers);
    if (!told.empty() || region.kind != RegionKind::file || region.length == 0) return told;
    survive_lost_bytes();
    TRY_ASSIGN(const RegionCopy copy, RegionCopy::make(region.length));
    for (const std::uint64_t front : fronts_bytes) {
        if (front >= region.length) break;
        TRY(read_into(copy, place, copies, rank, region, front, cost));
        TRY_ASSIGN(const bool says_all, says_all_in_front(copy));
        if (!says_all) break;
        Result<Description> described = describe(copy, region, Describers{{}, describers.rules, describers.names});
        if (described.ok()) return std::move(described->extents);
    }
    if (region.length > fronts_bytes[0])
        console.err << "cairn extract: note: what lies in " << for_terminal(region.name) << " is known from all of it only: " << format_bytes(region.length) << " are read first\n";
    TRY(read_into(copy, place, copies, rank, region, region.length, cost));
    Result<Description> described = describe(copy, region, describers);
    if (!described.ok()) return Status(described.code(), "region " + for_terminal(region.name) + ": " + described.status().text());
    return std::move(described->extents);
}

Extent of_bytes(const Extent& extent) { return {extent.name, DataType::u8, false, {extent.length}, extent.offset, extent.length}; }

}  // namespace

Result<Extent> find_array(Console& console, Place& place, const VersionCopies& copies, Rank rank, const Region& region, const std::string* asked, ReadCost& cost) {
    if (!asked) {
        const Extent all{region.name, region.type, false, region.shape, 0, region.length};
        return bytes_of(region.type, region.shape) == region.length ? all : of_bytes(all);
    }
    const std::string& name = *asked;
    TRY_ASSIGN(auto rules, load_file_rules(place.settings().describe.rules));
    Describer describer(describer_program());
    const Describers describers{[&](const std::string& path, std::uint64_t offset, std::uint64_t length) { return describer.describe(path, offset, length, std::chrono::seconds(30)); }, std::move(rules), {}};
    TRY_ASSIGN(const std::vector<Extent> arrays, arrays_in(console, place, copies, rank, region, describers, cost));
    const auto is_it = [&](const Extent& extent) { return extent.name == name; };
    const auto found = std::find_if(arrays.begin(), arrays.end(), is_it);
    const std::string where = "array '" + for_terminal(name) + "' of region " + for_terminal(region.name);
    if (found == arrays.end()) {
        std::string known;
        for (const Extent& extent : arrays)
            if (known.size() < 200) known += (known.empty() ? "'" : ", '") + for_terminal(extent.name) + "'";
        if (known.size() >= 200) known += " and others";
        return not_found("region " + for_terminal(region.name) + " has no array '" + for_terminal(name) + "'; " + (known.empty() ? "none is described in it (`cairn describe` shows what is seen in a file)" : "it has " + known));
    }
    constexpr std::string_view otherwise = ": take the whole region, and the slice with a program that reads such files";
    if (found->axes == ExtentAxes::piece || std::count_if(arrays.begin(), arrays.end(), is_it) > 1)
        return Status(Code::unsupported, where + " lies in pieces (an HDF5 dataset in chunks does), or there are several of that name" + std::string(otherwise));
    if (found->axes == ExtentAxes::reordered)
        return Status(Code::unsupported, where + " does not lie in the order of its axes (Fortran's order, or a transposed tensor)" + std::string(otherwise));
    if (found->axes == ExtentAxes::records || found->type == DataType::bytes || bytes_of(found->type, found->shape) != found->length)
        return Status(Code::unsupported, where + " is not stored as it is (its file compresses it, or it holds records)" + std::string(otherwise));
    return *found;
}

}  // namespace cairn::cli
