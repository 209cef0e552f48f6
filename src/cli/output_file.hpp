// OutputFile: bytes to a path that appears whole or not at all: written beside it under another name, fsynced, then
// renamed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn::cli {

class OutputFile {
  public:
    // Creates missing directories above `path`. already_exists unless `replace`.
    static Result<OutputFile> create(const std::string& path, bool replace);
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();  // without commit(): nothing is left

    Status write_at(std::uint64_t offset, ByteView bytes);
    Status commit(std::uint64_t bytes);  // sets the size, so that empty images are files too

  private:
    OutputFile() = default;
    std::string path_, temporary_;
    int descriptor_ = -1;
    bool replace_ = false;
};

// Whether put_file() can succeed, for saying so before long work: a file or nothing stands there, in a directory that is there and can be written.
Status check_output(const std::string& path);
bool is_same_file(const std::string& a, const std::string& b);  // also where neither is there yet
// All of `text`, in place of what stands there: behind a link what it leads to, with the permissions it had.
Status put_file(const std::string& path, std::string_view text);

}  // namespace cairn::cli
