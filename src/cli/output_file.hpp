// OutputFile: bytes to a path that appears whole or not at all: written beside it under another name, fsynced, then
// renamed.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn::cli {

class OutputFile {
  public:
    // Creates missing directories above `path`. already_exists unless `replace`.
    static Result<OutputFile> create(const std::string& path, bool replace);
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();  // without commit(): nothing is left, nor where SIGINT, SIGTERM or SIGHUP end the process

    Status write_at(std::uint64_t offset, ByteView bytes);
    Status commit(std::uint64_t bytes);  // sets the size, so that empty images are files too
    void close();  // until the next of these two

  private:
    OutputFile() = default;
    Status open();
    std::string path_, temporary_;
    std::atomic<char*>* remembered_ = nullptr;  // the temporary name, for a signal
    int descriptor_ = -1;
    bool replace_ = false;
    mode_t mode_ = 0;
    uid_t owner_ = static_cast<uid_t>(-1);  // -1: as it is made
    gid_t group_ = static_cast<gid_t>(-1);
};

// Files that get their bytes in any order, all or none of them: more than a process can have open. Of so many that were written lately the descriptors stay, since closing a file may send what it has.
class OutputFiles {
  public:
    explicit OutputFiles(bool replace) : replace_(replace) {}
    Status add(const std::string& path);
    Status write_at(std::size_t file, std::uint64_t offset, ByteView bytes);  // by order of add()
    Status commit(std::size_t file, std::uint64_t bytes);
    static constexpr std::size_t open_max = 256;

  private:
    void note_open(std::size_t file);
    bool replace_;
    std::vector<OutputFile> files_;
    std::deque<std::size_t> open_;  // those first that were opened first
    std::vector<bool> is_open_;
};

// Whether put_file() can succeed, for saying so before long work: a file or nothing stands there, in a directory that is there and can be written.
Status check_output(const std::string& path);
bool is_same_file(const std::string& a, const std::string& b);  // also where neither is there yet
// All of `text`, in place of what stands there: behind a link what it leads to, with the permissions it had.
Status put_file(const std::string& path, std::string_view text);

}  // namespace cairn::cli
