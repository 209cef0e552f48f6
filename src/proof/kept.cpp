#include "proof/kept.hpp"

#include <map>

#include "world/sim/encoding.hpp"

namespace cairn::testing {

namespace {

class KeptFile final : public File {
  public:
    KeptFile(std::string path, std::shared_ptr<sim::Content> of) : content(std::move(of)), path_(std::move(path)) {}
    const std::string& path() const noexcept override { return path_; }
    const std::shared_ptr<sim::Content> content;

  private:
    std::string path_;
};

const sim::Content& content_of(const FilePtr& file) { return *static_cast<const KeptFile&>(*file).content; }

Status not_ours() { return {Code::unsupported, "a reader changes nothing"}; }

}  // namespace

class Kept::Files final : public Storage {
  public:
    Files(sim::FileSystem& fs, std::string name) : fs_(fs), name_(std::move(name)) {}

    Result<std::shared_ptr<sim::Content>> find(const std::string& path) {
        if (const auto known = known_.find(path); known != known_.end()) return known->second;
        Result<sim::InodePtr> inode = path == name_ ? fs_.find(path) : fs_.find_kept(path);
        if (!inode.ok()) return std::move(inode).status();
        return known_[path] = sim::FileSystem::kept(**inode);
    }

    Result<BufferPtr> allocate(std::uint64_t bytes) override {
        auto content = std::make_shared<sim::Content>();
        content->resize(bytes);
        return BufferPtr(std::make_shared<sim::SimBuffer>(std::move(content), bytes));
    }
    Task<Result<FilePtr>> open(std::string path, OpenOptions options, Nanos) override {
        if (options.mode != OpenMode::read) co_return not_ours();
        Result<std::shared_ptr<sim::Content>> content = find(path);
        if (!content.ok()) co_return std::move(content).status();
        FilePtr file = std::make_shared<KeptFile>(std::move(path), std::move(content).value());
        co_return file;
    }
    Task<Result<std::uint64_t>> read_some(FilePtr file, std::uint64_t offset, Slice into, Nanos) override {
        const sim::Content& content = content_of(file);
        const std::uint64_t length = offset >= content.size() ? 0 : std::min(into.length, content.size() - offset);
        sim::put(into, content.read(offset, length));
        co_return length;
    }
    Task<Result<std::uint64_t>> file_bytes(FilePtr file, Nanos) override { co_return content_of(file).size(); }
    Task<Result<std::uint64_t>> write_some(FilePtr, std::uint64_t, Slice, Nanos) override { co_return not_ours(); }
    Task<Status> fsync(FilePtr, Nanos) override { co_return not_ours(); }
    Task<Status> resize(FilePtr, std::uint64_t, Nanos) override { co_return not_ours(); }
    Task<Status> make_directory(std::string, std::uint32_t, Nanos) override { co_return not_ours(); }
    Task<Status> fsync_directory(std::string, Nanos) override { co_return not_ours(); }
    Task<Status> publish(std::string, std::string, Nanos) override { co_return not_ours(); }
    Task<Status> replace(std::string, std::string, Nanos) override { co_return not_ours(); }
    Task<Status> remove(std::string, Nanos) override { co_return not_ours(); }
    Task<Status> remove_directory(std::string, Nanos) override { co_return not_ours(); }
    Task<Result<std::vector<DirectoryEntry>>> list(std::string, Nanos) override { co_return not_ours(); }
    Task<Result<std::uint64_t>> free_bytes(std::string, Nanos) override { co_return not_ours(); }
    Task<Result<BufferPtr>> map(std::string, bool, Nanos) override { co_return not_ours(); }

  private:
    sim::FileSystem& fs_;
    const std::string name_;
    std::map<std::string, std::shared_ptr<sim::Content>> known_;
};

class Kept::Sums final : public Cpu {
  public:
    Task<std::vector<std::uint64_t>> checksums(Slice data, Units units) override {
        co_return sim::checksums_of(sim::runs_of(data), units);
    }
    bool may_shrink(Codec, const std::vector<std::uint64_t>&, std::uint64_t, std::uint64_t) const override { return false; }
    // Copies alone.
    Task<Result<Encoded>> encode(Coding coding, Slice raw, BaseBytes, FindArrays, Slice into, Nanos) override {
        if (coding.codec != Codec::none) co_return not_ours();
        sim::put(into, sim::runs_of(raw));
        co_return Encoded{raw.length, 0, 0};
    }
    Task<Result<std::vector<NumberArray>>> find(FindArrays, Nanos) override { co_return not_ours(); }
    unsigned encoders() const override { return 1; }
    Task<Status> decode(Codec, Slice stored, Slice base, Slice into, Nanos) override {
        const std::optional<sim::Runs> raw = sim::decode_runs(sim::runs_of(stored), base.length == 0 ? sim::Runs() : sim::runs_of(base), into.length);
        if (!raw) co_return corrupt("what was encoded makes other bytes");
        sim::put(into, *raw);
        co_return Status();
    }
    Task<Result<bool>> equal(Pairs, Nanos) override { co_return not_ours(); }
};

namespace {

World with(World world, Storage& storage, Cpu& cpu) { return {world.clock, storage, world.network, world.random, cpu}; }

}  // namespace

Kept::Kept(sim::Process& process, std::string name)
    : files_(std::make_unique<Files>(process.simulation().persistent(), std::move(name))),
      sums_(std::make_unique<Sums>()),
      world_(with(process.world(), *files_, *sums_)) {}

Kept::~Kept() = default;

Result<Slice> Kept::bytes_of(const std::string& path, std::uint64_t offset, std::uint64_t length) const {
    Result<std::shared_ptr<sim::Content>> content = files_->find(path);
    if (!content.ok()) return std::move(content).status();
    auto copy = std::make_shared<sim::Content>();
    copy->write(0, (*content)->read(offset, length));
    copy->resize(length);
    return Slice{std::make_shared<sim::SimBuffer>(std::move(copy), length), 0, length};
}

}  // namespace cairn::testing
