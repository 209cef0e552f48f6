// A file system of which nothing is known: it puts files where it likes, and its natural block is what stat(2) calls st_blksize.
#include "storage/parallel_file_system.hpp"

namespace cairn {

namespace {

class Plain final : public ParallelFileSystem {
  public:
    std::string_view name() const override { return "plain"; }
    Result<PlacementTargets> targets(Outside&, const std::string& directory, const std::vector<std::string>&) const override {
        return Status(Code::unsupported, directory + " is on no file system whose targets Cairn can choose");
    }
    Status make(Outside&, const std::string& path, std::uint32_t, const Placing&, Nanos) const override { return Status(Code::unsupported, path + ": nobody here can say where it shall lie"); }
    std::string how() const override { return "the file system puts files where it likes"; }
};

}  // namespace

const ParallelFileSystem& plain_file_system() {
    static const Plain one;
    return one;
}

}  // namespace cairn
