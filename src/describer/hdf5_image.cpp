#include "describer/hdf5_image.hpp"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cstring>
#include <new>

namespace cairn {

namespace {

struct Source {
    const std::byte* bytes = nullptr;
    std::size_t size = 0;
    Hdf5Read* last_read = nullptr;
};

struct Image {
    H5FD_t common;  // the library's; first, since it knows no more of an Image
    Source source;
    haddr_t end = 0;  // of what the library takes for allocated
};

Image& of(H5FD_t* file) { return *reinterpret_cast<Image*>(file); }
const Image& of(const H5FD_t* file) { return *reinterpret_cast<const Image*>(file); }

H5FD_t* open_image(const char*, unsigned flags, hid_t access, haddr_t) {
    const auto* source = static_cast<const Source*>(H5Pget_driver_info(access));
    if (!source || flags & (H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC)) return nullptr;
    auto* image = new (std::nothrow) Image{};
    if (!image) return nullptr;
    image->source = *source;
    return &image->common;
}

herr_t close_image(H5FD_t* file) {
    delete &of(file);
    return 0;
}

herr_t query_image(const H5FD_t*, unsigned long* flags) {
    if (flags) *flags = 0;
    return 0;
}

haddr_t end_of_allocated(const H5FD_t* file, H5FD_mem_t) { return of(file).end; }
herr_t set_end_of_allocated(H5FD_t* file, H5FD_mem_t, haddr_t end) {
    of(file).end = end;
    return 0;
}
haddr_t end_of_image(const H5FD_t* file, H5FD_mem_t) { return of(file).source.size; }

// What lies behind the end is read as zero, as the library's other drivers have it.
herr_t read_image(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, std::size_t bytes, void* buffer) {
    const Source& source = of(file).source;
    if (type == H5FD_MEM_DRAW && source.last_read->is_watched) {
        *source.last_read = {true, address, bytes};
        return 0;
    }
    const std::size_t there = address < source.size ? std::min<std::size_t>(bytes, source.size - address) : 0;
    if (there > 0) std::memcpy(buffer, source.bytes + address, there);
    std::memset(static_cast<std::byte*>(buffer) + there, 0, bytes - there);
    return 0;
}

herr_t write_image(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }

hid_t image_driver() {
    static const hid_t driver = [] {
        H5FD_class_t all = {};
#if H5_VERSION_GE(1, 13, 0)
        all.version = H5FD_CLASS_VERSION;
        all.value = 511;  // of those that are for local use
#endif
        all.name = "cairn-image";
        all.maxaddr = HADDR_MAX;
        all.fc_degree = H5F_CLOSE_STRONG;
        all.fapl_size = sizeof(Source);
        all.open = open_image;
        all.close = close_image;
        all.query = query_image;
        all.get_eoa = end_of_allocated;
        all.set_eoa = set_end_of_allocated;
        all.get_eof = end_of_image;
        all.read = read_image;
        all.write = write_image;
        std::fill(std::begin(all.fl_map), std::end(all.fl_map), H5FD_MEM_SUPER);
        return H5FDregister(&all);
    }();
    return driver;
}

}  // namespace

Hdf5Id open_hdf5_image(ByteView image, Hdf5Read& last_read) {
    const Source source{image.data(), image.size(), &last_read};
    const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS));
    // Whatever is still open in the file is closed with it.
    if (image_driver() < 0 || H5Pset_driver(access.get(), image_driver(), &source) < 0 || H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG) < 0) return {};
    return Hdf5Id(H5Fopen("image", H5F_ACC_RDONLY, access.get()));
}

std::string hdf5_says() {
    std::string said;
    const auto take = [](unsigned, const H5E_error2_t* error, void* to) -> herr_t {
        auto& text = *static_cast<std::string*>(to);
        if (text.empty() && error->desc) text.assign(error->desc, ::strnlen(error->desc, 200));
        return 0;
    };
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &said);
    return said.empty() ? "no reason" : said;
}

}  // namespace cairn
