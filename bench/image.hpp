// Image: what a rank checkpoints. Every word follows from seed, rank and place, and one word a page from the version, so that after a restore
// each byte can be told right or wrong without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

// Private anonymous memory, every page touched, as large arrays of an application are.
class WarmMemory {
  public:
    explicit WarmMemory(std::uint64_t bytes);
    WarmMemory(const WarmMemory&) = delete;
    ~WarmMemory();
    std::byte* data() const { return data_; }
    std::uint64_t bytes() const { return bytes_; }

  private:
    std::byte* data_;
    std::uint64_t bytes_;
};

// Bytes of a rank's image: `mean` times 1 + imbalance * u, with u between -1 and 1 from seed and rank alone. A multiple of 8, at least 8.
std::uint64_t image_bytes(std::uint64_t mean, double imbalance, std::uint64_t seed, int rank);

class Image {
  public:
    Image(std::uint64_t bytes, std::uint64_t seed, int rank);
    void write_version(std::uint64_t version);
    void spoil();
    // Empty: every byte is as `version` had it. Else where the first wrong word is.
    std::string differs(std::uint64_t version) const;
    const WarmMemory& memory() const { return memory_; }

  private:
    std::uint64_t word(std::uint64_t index) const;
    std::uint64_t version_word(std::uint64_t index, std::uint64_t version) const;

    WarmMemory memory_;
    std::uint64_t* words_;
    std::uint64_t count_;
    std::uint64_t salt_;
};

// Of this process, as the kernel counts it.
std::uint64_t anonymous_bytes();

}  // namespace bench
