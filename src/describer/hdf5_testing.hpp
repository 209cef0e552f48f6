// Files in HDF5, as an application writes them, and what is compared with what they say.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "describe/file.hpp"
#include "describer/hdf5.hpp"
#include "describer/hdf5_id.hpp"

namespace cairn::testing {

class Folder {
  public:
    Folder() {
        std::string name = ::testing::TempDir() + "describer-XXXXXX";
        path_ = ::mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

inline Bytes bytes_in(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    return to_bytes(text);
}

inline void put_bytes(const std::string& path, ByteView bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// A file under construction. Values are written with conversion by the library, so that what lies in the file is the library's word.
class Hdf5Writer {
  public:
    explicit Hdf5Writer(const std::string& path, hsize_t user_block = 0, bool newest = false) {
        const Hdf5Id creation(H5Pcreate(H5P_FILE_CREATE)), access(H5Pcreate(H5P_FILE_ACCESS));
        if (user_block) {
            EXPECT_GE(H5Pset_userblock(creation.get(), user_block), 0);
        }
        if (newest) {
            EXPECT_GE(H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), 0);
        }
        file_ = Hdf5Id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()));
        EXPECT_TRUE(file_);
    }
    hid_t file() const { return file_.get(); }
    void group(const std::string& name) { Hdf5Id(H5Gcreate2(file(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)); }

    struct How {
        std::vector<hsize_t> chunk = {}, most = {};
        int gzip = 0;
        bool shuffle = false;
        bool compact = false;
        std::string external = {};
        bool written = true;
    };
    Hdf5Id properties(const How& how, hsize_t bytes) const {
        Hdf5Id made(H5Pcreate(H5P_DATASET_CREATE));
        if (!how.chunk.empty()) {
            EXPECT_GE(H5Pset_chunk(made.get(), static_cast<int>(how.chunk.size()), how.chunk.data()), 0);
        }
        if (how.shuffle) {
            EXPECT_GE(H5Pset_shuffle(made.get()), 0);
        }
        if (how.gzip) {
            EXPECT_GE(H5Pset_deflate(made.get(), static_cast<unsigned>(how.gzip)), 0);
        }
        if (how.compact) {
            EXPECT_GE(H5Pset_layout(made.get(), H5D_COMPACT), 0);
        }
        if (!how.external.empty()) {
            EXPECT_GE(H5Pset_external(made.get(), how.external.c_str(), 0, bytes), 0);
        }
        return made;
    }
    // `values`: as they are in memory, of type `memory`; in the file they are of type `stored`.
    void dataset(const std::string& name, hid_t stored, hid_t memory, const std::vector<hsize_t>& shape, const void* values, const How& how) {
        const Hdf5Id space(shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), how.most.empty() ? nullptr : how.most.data()));
        const hsize_t count = std::accumulate(shape.begin(), shape.end(), hsize_t{1}, std::multiplies<>());
        const Hdf5Id made(H5Dcreate2(file(), name.c_str(), stored, space.get(), H5P_DEFAULT, properties(how, count * H5Tget_size(stored)).get(), H5P_DEFAULT));
        ASSERT_TRUE(made) << name;
        if (how.written) {
            ASSERT_GE(H5Dwrite(made.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0) << name;
        }
    }
    void dataset(const std::string& name, hid_t stored, hid_t memory, const std::vector<hsize_t>& shape, const void* values) { dataset(name, stored, memory, shape, values, How()); }
    void doubles(const std::string& name, const std::vector<hsize_t>& shape, const std::vector<double>& values) { doubles(name, shape, values, How()); }
    void doubles(const std::string& name, const std::vector<hsize_t>& shape, const std::vector<double>& values, const How& how) {
        dataset(name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, shape, values.data(), how);
    }
    void close() { file_ = Hdf5Id(); }

  private:
    Hdf5Id file_;
};

inline std::vector<double> ramp(std::size_t count, double first = 0) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = first + 0.5 * static_cast<double>(i);
    return values;
}

// What a file says, sound, by name; several of one name in the order of their offsets.
struct Said {
    Bytes bytes;
    std::vector<Extent> extents;
    const Extent& at(const std::string& name, std::size_t which = 0) const {
        static const Extent none;
        for (const Extent& extent : extents)
            if (extent.name == name && which-- == 0) return extent;
        ADD_FAILURE() << "no extent " << name;
        return none;
    }
    std::size_t count(const std::string& name) const {
        std::size_t found = 0;
        for (const Extent& extent : extents) found += extent.name == name;
        return found;
    }
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const Extent& extent : extents) all.push_back(extent.name);
        return all;
    }
    template <class T>
    std::vector<T> values(const Extent& extent) const {
        std::vector<T> read(extent.length / sizeof(T));
        if (extent.offset + extent.length <= bytes.size()) std::memcpy(read.data(), bytes.data() + extent.offset, read.size() * sizeof(T));
        if (extent.is_big_endian)
            for (T& value : read) {
                auto* raw = reinterpret_cast<std::byte*>(&value);
                std::reverse(raw, raw + sizeof(T));
            }
        return read;
    }
};

inline Said said_of(const std::string& path) {
    Said said{bytes_in(path), {}};
    Result<std::vector<Extent>> extents = describe_hdf5(said.bytes);
    EXPECT_TRUE(extents.ok()) << extents.status().to_string();
    if (!extents.ok()) return said;
    const std::size_t all = extents.value().size();
    said.extents = sound(std::move(extents).value(), said.bytes.size());
    EXPECT_EQ(said.extents.size(), all) << "some were not sound";
    return said;
}

}  // namespace cairn::testing
