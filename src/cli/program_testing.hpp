// For tests: runs the real binary in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace cairn::cli {

struct Ran {
    int exit = -1;
    std::string out, err;
};

// A fresh folder: working directory, home, scratch ("scratch") and persistent ("checkpoints") of what runs in it.
class ProgramFolder {
  public:
    std::string environment;  // "A=1 B=2", for the next runs

    ProgramFolder() {
        std::string pattern = testing::TempDir() + "cairn_cli_XXXXXX";
        root_ = ::mkdtemp(pattern.data());
        std::filesystem::create_directories(path("scratch"));
        std::filesystem::create_directories(path("checkpoints"));
    }
    ProgramFolder(const ProgramFolder&) = delete;
    ~ProgramFolder() { std::filesystem::remove_all(root_); }

    std::string path(const std::string& name) const { return root_ + "/" + name; }
    void write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
        std::ofstream(path(name), std::ios::binary) << text;
    }
    std::string read(const std::string& name) const {
        std::ifstream in(path(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    // `arguments` as a shell reads them. The deadline only keeps a hanging test from hanging the suite.
    Ran run(const std::string& arguments) const {
        const std::string command = "cd '" + root_ + "' && env HOME='" + root_ + "' CAIRN_PATHS_SCRATCH='" +
                                    path("scratch") + "' " + environment +
                                    " timeout 120 '" CAIRN_PROGRAM "' >.out 2>.err " + arguments;
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(".out"), read(".err")};
    }

  private:
    std::string root_;
};

}  // namespace cairn::cli
