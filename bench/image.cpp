#include "image.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "team.hpp"

namespace bench {

namespace {

constexpr std::uint64_t words_a_page = 512;

std::uint64_t mix(std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

}  // namespace

WarmMemory::WarmMemory(std::uint64_t bytes) : bytes_(bytes) {
    void* const got = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) fail("no memory for " + std::to_string(bytes) + " bytes: ask for a smaller --size");
    data_ = static_cast<std::byte*>(got);
    std::memset(data_, 1, bytes);
}

WarmMemory::~WarmMemory() { ::munmap(data_, bytes_); }

std::uint64_t image_bytes(std::uint64_t mean, double imbalance, std::uint64_t seed, int rank) {
    const double u = 2 * static_cast<double>(mix(seed * 1'000'003 + static_cast<std::uint64_t>(rank)) >> 11) / 9007199254740992.0 - 1;
    const double bytes = static_cast<double>(mean) * (1 + imbalance * u);
    return std::max<std::uint64_t>(8, static_cast<std::uint64_t>(bytes) / 8 * 8);
}

Image::Image(std::uint64_t bytes, std::uint64_t seed, int rank)
    : memory_(bytes),
      words_(reinterpret_cast<std::uint64_t*>(memory_.data())),
      count_(bytes / 8),
      salt_(mix(seed ^ (static_cast<std::uint64_t>(rank) << 40))) {
    for (std::uint64_t i = 0; i < count_; ++i) words_[i] = word(i);
}

std::uint64_t Image::word(std::uint64_t index) const { return mix(salt_ + index); }
std::uint64_t Image::version_word(std::uint64_t index, std::uint64_t version) const { return mix(salt_ ^ mix(version) ^ index); }

void Image::write_version(std::uint64_t version) {
    for (std::uint64_t i = 0; i < count_; i += words_a_page) words_[i] = version_word(i, version);
}

void Image::spoil() { std::memset(memory_.data(), 0xa5, memory_.bytes()); }

std::string Image::differs(std::uint64_t version) const {
    for (std::uint64_t i = 0; i < count_; ++i) {
        const std::uint64_t expected = i % words_a_page == 0 ? version_word(i, version) : word(i);
        if (words_[i] != expected) return "byte " + std::to_string(8 * i) + " of " + std::to_string(8 * count_);
    }
    return {};
}

std::uint64_t anonymous_bytes() {
    unsigned long long kib = 0;
    std::FILE* const file = std::fopen("/proc/self/status", "r");
    if (!file) return 0;
    char line[256];
    while (std::fgets(line, sizeof line, file))
        if (std::sscanf(line, "RssAnon: %llu", &kib) == 1) break;
    std::fclose(file);
    return kib * 1024;
}

}  // namespace bench
