// A sample of files, as an image that a flush would store: what `cairn tune --codecs` and the bench try codecs on. Files are mapped, and copied a run at a time by who encodes.
//
// Of files with more bytes than one wants to look at each gives its share, in stretches that lie evenly over it: a file's beginning holds its first variables, and tells nothing of the others. Files of
// one length give the same stretches, so that what is alike in images stays side by side where they share runs.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "describe/file.hpp"
#include "model/number_array.hpp"
#include "world/buffer.hpp"

namespace cairn::cli {

// Of arrays it knows as many as a daemon does of an image, extents_max: some 3 MB.
class SampleImage {
  public:
    // Of a buffer, behind what was appended before; `arrays`: of the buffer, by offset.
    void append(BufferPtr buffer, std::uint64_t offset, std::uint64_t length, const std::vector<NumberArray>& arrays);
    std::uint64_t bytes() const { return bytes_; }
    std::uint64_t described_bytes() const { return described_bytes_; }
    const std::vector<NumberArray>& arrays() const { return arrays_; }
    void set_keys(const std::vector<std::uint32_t>& keys);  // one for each array
    void copy(std::uint64_t offset, std::span<std::byte> into) const;
    // Some of a mapped file was not to be had when it was copied, and zeros stood for it.
    bool has_lost_bytes() const;

  private:
    struct Stretch {
        BufferPtr buffer;
        std::uint64_t offset, length;  // in the buffer
        std::uint64_t at;              // in the image
    };
    std::vector<Stretch> stretches_;
    std::vector<NumberArray> arrays_;
    std::uint64_t bytes_ = 0, described_bytes_ = 0;
};

// So many bytes of each of these files, at most so many of all together. Files that are too many for a share of 8 MiB, or all of it, are left out by turns.
std::vector<std::uint64_t> sample_shares(const std::vector<std::uint64_t>& file_bytes, std::uint64_t bytes_max);
// Which stretches of a file: offset and length, by offset, together no more than `share`.
using Stretches = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
Stretches sample_stretches(std::uint64_t file_bytes, std::uint64_t share);

// The file's bytes, or `share` of them, behind those of the files before it, and what is known of them. A file that can not be described is appended all the same.
Status append_file(SampleImage& image, const std::string& path, const Describers& describers, std::uint64_t share = UINT64_MAX);

}  // namespace cairn::cli
