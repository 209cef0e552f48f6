// The pieces of a restore: where bytes come from (ImageReader), and the run over versions (RestoreRun). Where they go: restore_target.hpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/restore_target.hpp"
#include "client/session.hpp"
#include "copies/restore.hpp"
#include "copies/scratch.hpp"
#include "read/image_regions.hpp"
#include "world/real/world.hpp"

namespace cairn {

// One rank's image of one version, in scratch or in committed files. Its event loop and threads live as long as it
// does.
class ImageReader {
  public:
    static Result<std::unique_ptr<ImageReader>> create(std::unique_ptr<RealWorld> real, const Layout& layout, Rank rank,
                                                       std::uint64_t wait_ms, std::uint64_t io_ms);

    Status open_local(const KeptVersion& kept);
    void close_local() { local_.reset(); }
    Status open_committed(const KeptVersion& kept);
    const ImageInfo& image() const;  // of what is open; scratch before files
    Status read(std::vector<ImageRange> ranges, ImageSink sink);

  private:
    ImageReader() = default;
    std::unique_ptr<RealWorld> real_;  // first: outlives the mapping
    Layout layout_;
    Rank rank_ = 0;
    RestoreSettings settings_;
    Nanos until_ = 0;
    std::optional<LocalImage> local_;
    std::optional<OpenVersion> committed_;
};

class RestoreRun {
  public:
    RestoreRun(Session& session, const std::vector<std::string>* names, Deadline deadline);

    // Collective, after a survey.
    Result<const KeptVersion*> newest();
    Result<const KeptVersion*> exactly(Version version);
    const std::string& notes() const noexcept { return notes_; }  // for a person, one a line

  private:
    Result<std::vector<const ProtectedRegion*>> wanted() const;
    Status aim(const KeptVersion& kept, ImageInfo image);
    Status fetch_from(ImageReader& reader, const KeptVersion& kept, bool& refused);
    Status fetch(const KeptVersion& kept, bool& refused);
    Status restore(const KeptVersion& kept, bool& refused);

    Session& session_;
    const std::vector<std::string>* names_;
    Deadline deadline_;
    std::vector<std::unique_ptr<RestoreTarget>> targets_;
    std::string notes_;
};

}  // namespace cairn
