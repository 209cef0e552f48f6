// For tests of this room: a loop, a directory of its own on a chosen kind of file system, and short names for time.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "world/real/loop.hpp"
#include "world/real/storage.hpp"

namespace cairn::test {

inline constexpr Nanos patience = 60 * second;  // long enough on the busiest machine; nothing asserts that it passes

inline std::unique_ptr<Loop> make_loop() {
    Result<std::unique_ptr<Loop>> loop = Loop::create();
    EXPECT_TRUE(loop.ok()) << loop.status().to_string();
    return std::move(loop).value();
}

inline std::unique_ptr<RealStorage> make_storage(Loop& loop, StorageOptions options) {
    Result<std::unique_ptr<RealStorage>> storage = RealStorage::create(loop, options);
    EXPECT_TRUE(storage.ok()) << storage.status().to_string();
    return std::move(storage).value();
}

inline bool uring_allowed() {
    const auto loop = make_loop();
    return RealStorage::create(*loop, {.backend = IoBackend::uring}).ok();
}

// Removed with all that is in it.
class TemporaryDirectory {
  public:
    // below: "/dev/shm" for tmpfs, else the system's place for temporary files.
    explicit TemporaryDirectory(std::string below = std::filesystem::temp_directory_path().string()) {
        std::string pattern = below + "/cairn-test-XXXXXX";
        path_ = ::mkdtemp(pattern.data()) ? pattern : std::string();
        EXPECT_FALSE(path_.empty()) << "no directory can be made in " << below;
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() { remove(); }
    // For a process that ends without destructors: a death test has a directory of its own.
    void remove() const {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const noexcept { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

}  // namespace cairn::test
