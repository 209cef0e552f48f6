// Goes through the groups, each object once: hard links may go in circles, and soft links and links to other files are not followed.
#include "describer/hdf5.hpp"

#include <deque>
#include <new>
#include <unordered_set>

#include "describe/file.hpp"
#include "describer/hdf5_found.hpp"
#include "describe/hdf5_signature.hpp"

namespace cairn {

namespace {

constexpr std::size_t name_bytes_max = 255;

class Walk {
  public:
    Walk(hid_t file, Hdf5Found& found) : file_(file), found_(found) {}
    Status run();

  private:
    struct Group {
        haddr_t address = HADDR_UNDEF;
        std::string prefix;  // of the names in it
    };
    static herr_t each_link(hid_t group, const char* name, const H5L_info_t* link, void* walk) noexcept;
    bool object(haddr_t address, std::string name);
    bool dataset(hid_t dataset, const std::string& name);
    Hdf5Id open(haddr_t address) const { return Hdf5Id(H5Oopen_by_addr(file_, address)); }

    hid_t file_;
    Hdf5Found& found_;
    std::unordered_set<haddr_t> seen_;
    std::deque<Group> groups_;  // to be gone through: no recursion, as deep as a file may nest them
    const std::string* prefix_ = nullptr;
    std::string failed_;  // at this name
};

Status Walk::run() {
    {
        const Hdf5Id root(H5Gopen2(file_, "/", H5P_DEFAULT));
        H5O_info_t about{};
        if (!root || H5Oget_info(root.get(), &about) < 0) return corrupt("its root can not be read: " + hdf5_says());
        seen_.insert(about.addr);
        groups_.push_back({about.addr, {}});
    }
    while (!groups_.empty() && !found_.is_full()) {
        const Group group = std::move(groups_.front());
        groups_.pop_front();
        prefix_ = &group.prefix;
        const Hdf5Id opened = open(group.address);
        if (!opened || H5Literate(opened.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, each_link, this) < 0)
            return corrupt((failed_.empty() ? "/" + group.prefix : failed_) + " can not be read: " + hdf5_says());
    }
    return {};
}

herr_t Walk::each_link(hid_t, const char* name, const H5L_info_t* link, void* walk) noexcept {
    auto& here = *static_cast<Walk*>(walk);
    try {
        if (link->type != H5L_TYPE_HARD || !here.seen_.insert(link->u.address).second) return H5_ITER_CONT;
        if (!here.object(link->u.address, *here.prefix_ + name)) {
            here.failed_ = *here.prefix_ + name;
            return H5_ITER_ERROR;
        }
        return here.found_.is_full() ? H5_ITER_STOP : H5_ITER_CONT;
    } catch (...) {
        return H5_ITER_ERROR;  // no memory; no exception goes through the library
    }
}

bool Walk::object(haddr_t address, std::string name) {
    if (name.size() > name_bytes_max) name.resize(name_bytes_max);
    const Hdf5Id opened = open(address);
    if (!opened) return false;
    const H5I_type_t type = H5Iget_type(opened.get());
    if (type == H5I_GROUP) groups_.push_back({address, name + "/"});
    return type != H5I_DATASET || dataset(opened.get(), name);
}

bool Walk::dataset(hid_t dataset, const std::string& name) {
    const Hdf5Id type(H5Dget_type(dataset)), space(H5Dget_space(dataset));
    if (!type || !space) return false;
    const std::optional<Hdf5Number> number = hdf5_number(type.get());
    const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
    if (!number || (kind != H5S_SIMPLE && kind != H5S_SCALAR)) return true;
    const int axes = H5Sget_simple_extent_ndims(space.get());
    if (axes < 0) return false;
    std::vector<hsize_t> shape(static_cast<std::size_t>(axes));
    if (H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr) != axes) return false;
    // Only what lies in one piece, and in this file, has a place.
    if (const haddr_t address = H5Dget_offset(dataset); address != HADDR_UNDEF) {
        found_.add(name, *number, shape, address, H5Dget_storage_size(dataset));
        return true;
    }
    const Hdf5Id properties(H5Dget_create_plist(dataset));
    if (!properties) return false;
    return H5Pget_layout(properties.get()) != H5D_CHUNKED || find_hdf5_chunks(found_, dataset, properties.get(), name, *number, shape);
}

Result<std::vector<Extent>> describe(ByteView file) {
    const std::optional<std::uint64_t> begin = hdf5_begins(file);
    if (!begin) return corrupt("no HDF5");
    Hdf5Read last_read;
    Hdf5Found found{*begin, last_read, chunk_lookups_max, {}};
    Hdf5Id opened = open_hdf5_image(file.subspan(*begin), last_read);
    if (!opened) return corrupt("libhdf5 can not open it: " + hdf5_says());
    TRY(Walk(opened.get(), found).run());
    return std::move(found.extents);
}

}  // namespace

bool Hdf5Found::is_full() const { return extents.size() >= extents_max; }

void Hdf5Found::add(const std::string& name, const Hdf5Number& number, const std::vector<hsize_t>& shape, haddr_t address, std::uint64_t bytes) {
    Extent extent{name, number.type, number.is_big_endian, std::vector<std::uint64_t>(shape.begin(), shape.end())};
    extent.shape.insert(extent.shape.end(), number.axes.begin(), number.axes.end());
    if (bytes == 0 || bytes_of(extent.type, extent.shape) != bytes || __builtin_add_overflow(begin, address, &extent.offset)) return;
    extent.length = bytes;
    if (number.is_record) extent.axes = ExtentAxes::records;
    extents.push_back(std::move(extent));
}

void Hdf5Found::add_bytes(const std::string& name, haddr_t address, std::uint64_t bytes) { add(name, Hdf5Number{}, {bytes}, address, bytes); }

Result<std::vector<Extent>> describe_hdf5(ByteView file) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it prints its errors otherwise
    try {
        return describe(file);
    } catch (const std::bad_alloc&) {
        return Status(Code::out_of_space, "describing it takes too much memory");
    }
}

}  // namespace cairn
