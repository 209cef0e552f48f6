// libhdf5's names for what is open, closed when they go.
#pragma once

// The functions as 1.10 has them, of later libraries, too.
#define H5_USE_110_API 1
#include <hdf5.h>

#include <string>
#include <utility>

namespace cairn {

class Hdf5Id {
  public:
    Hdf5Id() noexcept = default;
    explicit Hdf5Id(hid_t id) noexcept : id_(id) {}
    Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
    Hdf5Id& operator=(Hdf5Id&& other) noexcept {
        std::swap(id_, other.id_);
        return *this;
    }
    ~Hdf5Id() {
        if (id_ >= 0) H5Idec_ref(id_);
    }
    hid_t get() const noexcept { return id_; }
    explicit operator bool() const noexcept { return id_ >= 0; }

  private:
    hid_t id_ = -1;
};

// What the library said last, nearest to the cause.
std::string hdf5_says();

}  // namespace cairn
