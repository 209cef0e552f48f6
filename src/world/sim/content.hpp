// Content: what files and buffers of the simulated world hold, as runs: real bytes, described bytes (a seed and an offset stand
// for a fixed pseudo-random sequence), or holes (zeros). Memory is proportional to the number of runs and to the real bytes.
//
// The checksum is a function of the bytes alone: ranges of up to exact_bytes_max are materialised and get the checksum of their
// bytes; longer ones get a hash of their canonical runs, in which a real copy of described bytes is only recognised next to them.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "model/checksum_units.hpp"
#include "world/buffer.hpp"

namespace cairn::sim {

struct Run {
    enum class Kind : std::uint8_t { hole, described, bytes };
    Kind kind = Kind::hole;
    std::uint64_t seed = 0;    // described
    std::uint64_t offset = 0;  // described: in the sequence; bytes: in *bytes
    std::uint64_t length = 0;
    std::shared_ptr<const Bytes> bytes;

    Run part(std::uint64_t from, std::uint64_t count) const;
    void materialise(std::byte* into) const;  // `length` bytes
};
using Runs = std::vector<Run>;

inline constexpr std::uint64_t exact_bytes_max = 64 << 10;

Runs runs_of_bytes(ByteView bytes);
Runs runs_of_description(std::uint64_t seed, std::uint64_t offset, std::uint64_t length);
std::uint64_t length_of(const Runs& runs);
Runs part_of(const Runs& runs, std::uint64_t from, std::uint64_t count);
Runs coalesce(const Runs& runs);
Bytes materialise(const Runs& runs);
bool equal(const Runs& a, const Runs& b);
std::uint64_t checksum_of(const Runs& runs);
std::vector<std::uint64_t> checksums_of(const Runs& runs, const Units& units);  // of each unit

class Content {
  public:
    std::uint64_t size() const noexcept { return size_; }
    // Not holes. What the content takes of a file system's space.
    std::uint64_t stored_bytes() const noexcept { return stored_; }

    void write(std::uint64_t offset, const Runs& runs);  // grows it where needed
    Runs read(std::uint64_t offset, std::uint64_t length) const;  // a hole beyond the end
    void resize(std::uint64_t size);
    void flip_bit(std::uint64_t byte, unsigned bit);
    // As a mapping shows it whose file a disk has lost from here on, or that was made shorter.
    void lose(std::uint64_t offset);
    bool has_lost_bytes() const noexcept { return has_lost_bytes_; }

    // Gives the first size() bytes a fixed place in memory, shared by whoever maps it. Not where described runs are in it, nor
    // where it has grown since the first time.
    bool can_flatten() const noexcept;
    std::byte* flatten();

  private:
    void clear_range(std::uint64_t from, std::uint64_t to);
    void read_runs(std::uint64_t from, std::uint64_t to, Runs& into) const;

    std::map<std::uint64_t, Run> runs_;  // by offset, beyond flat_; gaps are holes
    std::unique_ptr<Bytes> flat_;        // offset 0 on; never reallocated
    std::uint64_t size_ = 0;
    std::uint64_t stored_ = 0;
    bool has_lost_bytes_ = false;
};

// A buffer without memory behind it: a view of content, its own or a mapped file's.
class SimBuffer final : public Buffer {
  public:
    // `account` counts the bytes of buffers alive; may be null.
    SimBuffer(std::shared_ptr<Content> content, std::uint64_t size, std::shared_ptr<std::uint64_t> account = nullptr);
    ~SimBuffer() override;
    SimBuffer(const SimBuffer&) = delete;
    std::byte* data() noexcept override { return nullptr; }
    std::uint64_t size() const noexcept override { return size_; }
    bool has_lost_bytes() const noexcept override { return content_->has_lost_bytes(); }
    Content& content() noexcept { return *content_; }
    bool mapped() const noexcept { return account_ == nullptr; }
    // Each byte can be read once; from then on another stands there.
    void give_once() noexcept { once_ = true; }
    Runs read(std::uint64_t offset, std::uint64_t length);

  private:
    std::shared_ptr<Content> content_;
    std::uint64_t size_;
    std::shared_ptr<std::uint64_t> account_;
    bool once_ = false;
};

// A mapped file of real bytes.
class FlatBuffer final : public Buffer {
  public:
    FlatBuffer(std::shared_ptr<Content> content, std::byte* data, std::uint64_t size)
        : content_(std::move(content)), data_(data), size_(size) {}
    std::byte* data() noexcept override { return data_; }
    std::uint64_t size() const noexcept override { return size_; }
    bool has_lost_bytes() const noexcept override { return content_->has_lost_bytes(); }

  private:
    std::shared_ptr<Content> content_;
    std::byte* data_;
    std::uint64_t size_;
};

// The content of a slice now, and putting content into one.
Runs runs_of(const Slice& slice);
bool is_mapped(const Slice& slice);  // of a file
void put(const Slice& into, const Runs& runs);

// A slice that holds these.
Slice slice_of(const Runs& runs);
// For tests: a slice of `length` described bytes, and comparison byte for byte.
Slice describe(std::uint64_t seed, std::uint64_t length, std::uint64_t offset = 0);
Slice describe_once(std::uint64_t seed, std::uint64_t length);  // of which each byte can be read once
bool content_equal(const Slice& a, const Slice& b);

}  // namespace cairn::sim
