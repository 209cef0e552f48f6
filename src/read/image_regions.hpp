// ImageRegions: an image's regions by name. Who asks for each of a hundred thousand regions looks each up, and does not search through all.
#pragma once

#include <string_view>
#include <unordered_map>

#include "model/types.hpp"

namespace cairn {

class ImageRegions {
  public:
    explicit ImageRegions(ImageInfo image) : image_(std::move(image)) {
        by_name_.reserve(image_.regions.size());
        for (const Region& region : image_.regions) by_name_.emplace(region.name, &region);
    }
    ImageRegions(const ImageRegions&) = delete;  // the names lie in the image

    const ImageInfo& image() const noexcept { return image_; }
    // Null when there is none.
    const Region* find(std::string_view name) const {
        const auto found = by_name_.find(name);
        return found == by_name_.end() ? nullptr : found->second;
    }

  private:
    ImageInfo image_;
    std::unordered_map<std::string_view, const Region*> by_name_;
};

}  // namespace cairn
