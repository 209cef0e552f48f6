// The base of what a node encodes: the same bytes of an older version's image, where that is in this node's scratch still. Where it is not, or is otherwise divided, there is none, and what
// is encoded stands alone.
//
// Not chosen: to read it from storage, which is what a flush waits for; or from another node.
#pragma once

#include "engine/flight.hpp"
#include "world/cpu.hpp"

namespace cairn::engine {

// Holds the older image in scratch until it goes.
class BaseUse {
  public:
    BaseUse() = default;
    BaseUse(HeldImagesPtr images, HeldImage& held, BaseBytes bytes) : bytes_(std::move(bytes)), images_(std::move(images)), held_(&held) { ++held_->users; }
    BaseUse(BaseUse&& other) noexcept : bytes_(std::move(other.bytes_)), images_(std::move(other.images_)), held_(std::exchange(other.held_, nullptr)) {}
    BaseUse& operator=(BaseUse&&) = delete;
    ~BaseUse() {
        if (held_) --held_->users;
    }
    const BaseBytes& bytes() const { return bytes_; }
    // False: scratch has lost some of it since, and what was made of it may be what changed since nothing.
    bool is_there() const { return !held_ || check_not_lost(held_->image).ok(); }

  private:
    BaseBytes bytes_;
    HeldImagesPtr images_;
    HeldImage* held_ = nullptr;
};

// Of `source`, bytes of an image that is `now`, in the version `base` of the same job.
BaseUse base_of(const Job& job, Version base, const Source& source, const HeldImage& now);

}  // namespace cairn::engine
