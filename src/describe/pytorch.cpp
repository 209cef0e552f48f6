#include "describe/pytorch.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "describe/file.hpp"
#include "describe/pickle.hpp"

namespace cairn {

namespace {

using Entries = std::map<std::string_view, const ZipEntry*>;

ByteView bytes_of_entry(ByteView file, const Entries& entries, const std::string& name) {
    const auto found = entries.find(name);
    return found == entries.end() ? ByteView() : file.subspan(found->second->offset, found->second->length);
}

// The shape in which a tensor's numbers lie, its axes by their strides: those of a transposed one, or of one with channels last, are side by side too. Nothing for one that
// leaves numbers out or has one of them twice.
std::optional<std::vector<std::uint64_t>> shape_in_memory(const PickledTensor& tensor) {
    std::vector<std::size_t> axes(tensor.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    // The stride of an axis of length 1 means nothing; axes of one stride stay as they are.
    std::erase_if(axes, [&](std::size_t axis) { return tensor.shape[axis] == 1; });
    std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) { return tensor.strides[a] > tensor.strides[b]; });
    const bool is_in_order = std::is_sorted(axes.begin(), axes.end());
    std::uint64_t numbers = 1;
    for (std::size_t i = axes.size(); i-- > 0;)
        if (tensor.strides[axes[i]] != numbers || __builtin_mul_overflow(numbers, tensor.shape[axes[i]], &numbers)) return std::nullopt;
    if (is_in_order) return tensor.shape;
    std::vector<std::uint64_t> shape;
    for (const std::size_t axis : axes) shape.push_back(tensor.shape[axis]);
    return shape;
}

// In the storage; nothing where it does not lie in it side by side.
std::optional<Extent> extent_of(const PickledTensor& tensor, std::string_view key, std::uint64_t storage_bytes) {
    if (tensor.type == DataType::bytes) return std::nullopt;
    std::optional<std::vector<std::uint64_t>> shape = shape_in_memory(tensor);
    if (!shape) return std::nullopt;
    Extent extent;
    extent.type = tensor.type;
    if (*shape != tensor.shape) extent.axes = ExtentAxes::reordered;
    extent.shape = std::move(*shape);
    const std::optional<std::uint64_t> length = bytes_of(extent.type, extent.shape);
    if (!length || *length == 0 || __builtin_mul_overflow(tensor.offset, type_bytes(extent.type), &extent.offset)) return std::nullopt;
    if (extent.offset > storage_bytes || *length > storage_bytes - extent.offset) return std::nullopt;
    extent.length = *length;
    extent.name = tensor.name.empty() ? std::string(key) : tensor.name;
    return extent;
}

// What no tensor is said to have, as numbers of the storage's type.
void add_rest(std::vector<Extent>& extents, std::string_view key, DataType type, std::uint64_t offset, std::uint64_t end) {
    const std::uint64_t width = type == DataType::bytes ? 1 : type_bytes(type), numbers = (end - offset) / width;
    if (numbers == 0) return;
    Extent extent;
    extent.name = key;
    extent.type = type;
    extent.shape = {numbers};
    extent.offset = offset;
    extent.length = numbers * width;
    extents.push_back(std::move(extent));
}

// Of an untyped storage: the type of all tensors in it.
DataType type_of_rest(const PickledStorage& storage, const std::vector<Extent>& tensors) {
    if (storage.type != DataType::bytes || tensors.empty()) return storage.type;
    const bool is_one = std::all_of(tensors.begin(), tensors.end(), [&](const Extent& tensor) { return tensor.type == tensors.front().type; });
    return is_one ? tensors.front().type : DataType::bytes;
}

// Of tensors that have numbers in common the one that begins first, and of those the longest: a view comes second to what it is a view of. All offsets within the storage.
std::vector<Extent> extents_of(const PickledStorage& storage, std::vector<Extent> tensors, std::uint64_t storage_bytes) {
    std::stable_sort(tensors.begin(), tensors.end(), [](const Extent& a, const Extent& b) { return a.offset != b.offset ? a.offset < b.offset : a.length > b.length; });
    const DataType rest = type_of_rest(storage, tensors);
    std::vector<Extent> extents;
    std::uint64_t end = 0;
    for (Extent& tensor : tensors) {
        if (tensor.offset < end) continue;
        add_rest(extents, storage.key, rest, end, tensor.offset);
        end = tensor.offset + tensor.length;
        extents.push_back(std::move(tensor));
    }
    add_rest(extents, storage.key, rest, end, storage_bytes);
    return extents;
}

// The storages of one pickle: <folder>.pkl names what is in <folder>/.
void add_storages(ByteView file, const Entries& entries, const std::string& folder, bool is_big_endian, std::vector<Extent>& extents) {
    Pickled pickled = scan_pickle(bytes_of_entry(file, entries, folder + ".pkl"));
    std::vector<const ZipEntry*> bytes;
    for (const PickledStorage& storage : pickled.storages) {
        const auto entry = entries.find(folder + "/" + std::string(storage.key));
        bytes.push_back(entry == entries.end() ? nullptr : entry->second);
    }
    std::vector<std::vector<Extent>> tensors(pickled.storages.size());
    for (const PickledTensor& tensor : pickled.tensors) {
        if (bytes[tensor.storage] == nullptr) continue;
        if (std::optional<Extent> extent = extent_of(tensor, pickled.storages[tensor.storage].key, bytes[tensor.storage]->length)) tensors[tensor.storage].push_back(std::move(*extent));
    }
    for (std::size_t i = 0; i < pickled.storages.size() && extents.size() < extents_max; ++i) {
        if (bytes[i] == nullptr) continue;
        for (Extent& extent : extents_of(pickled.storages[i], std::move(tensors[i]), bytes[i]->length)) {
            extent.offset += bytes[i]->offset;
            extent.is_big_endian = is_big_endian && extent.type != DataType::bytes && type_bytes(extent.type) > 1;
            extents.push_back(std::move(extent));
        }
    }
}

}  // namespace

std::vector<Extent> describe_pytorch(ByteView file, const std::vector<ZipEntry>& entries) {
    Entries by_name;
    std::string root;
    for (const ZipEntry& entry : entries) {
        by_name.try_emplace(entry.name, &entry);
        if (root.empty() && entry.name.ends_with("/data.pkl")) root = entry.name.substr(0, entry.name.size() - std::string_view("data.pkl").size());
    }
    std::vector<Extent> extents;
    if (root.empty()) return extents;
    const bool is_big_endian = as_text(bytes_of_entry(file, by_name, root + "byteorder")) == "big";
    // TorchScript has those of its code beside those of its objects.
    for (const char* folder : {"data", "constants"}) add_storages(file, by_name, root + folder, is_big_endian, extents);
    return extents;
}

}  // namespace cairn
