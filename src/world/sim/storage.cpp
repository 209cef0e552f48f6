// Storage of a simulated process: when an operation takes effect, and what the effect is.
#include <cerrno>

#include "base/checksum.hpp"
#include "world/sim/machine.hpp"
#include "world/sim/operation.hpp"

namespace cairn::sim {

namespace {

using OperationPtr = std::shared_ptr<Operation>;
using Kind = Operation::Kind;

class SimStorage final : public Storage {
  public:
    SimStorage(Process& process, Clock& clock) : process_(process), sim_(process.simulation()), clock_(clock) {}

    Result<BufferPtr> allocate(std::uint64_t bytes) override { return process_.allocate(bytes); }
    Task<Result<FilePtr>> open(std::string path, OpenOptions options, Nanos deadline) override;
    Task<Result<std::uint64_t>> write_some(FilePtr file, std::uint64_t offset, Slice data, Nanos deadline) override;
    Task<Result<std::uint64_t>> read_some(FilePtr file, std::uint64_t offset, Slice into, Nanos deadline) override;
    Task<Result<std::vector<std::uint64_t>>> read_checksummed(FilePtr file, std::uint64_t offset, std::uint64_t length, Units units, std::vector<Destination> into, Nanos deadline) override;
    Task<Status> fsync(FilePtr file, Nanos deadline) override;
    Task<Result<std::uint64_t>> file_bytes(FilePtr file, Nanos deadline) override;
    Task<Status> resize(FilePtr file, std::uint64_t bytes, Nanos deadline) override;
    Task<Status> make_directory(std::string path, std::uint32_t permissions, Nanos deadline) override;
    Task<Status> fsync_directory(std::string path, Nanos deadline) override;
    Task<Status> publish(std::string from, std::string to, Nanos deadline) override;
    Task<Status> replace(std::string from, std::string to, Nanos deadline) override;
    Task<Status> remove(std::string path, Nanos deadline) override;
    Task<Status> remove_directory(std::string path, Nanos deadline) override;
    Task<Result<std::vector<DirectoryEntry>>> list(std::string path, Nanos deadline) override;
    Task<Result<std::uint64_t>> free_bytes(std::string directory, Nanos deadline) override;
    Task<Result<BufferPtr>> map(std::string path, bool writable, Nanos deadline) override;

  private:
    struct Target {
        FileSystem* fs = nullptr;  // null: no file system there
        bool shared = false;
    };
    Target target_of(const std::string& path);
    Nanos jitter(Nanos span) { return span + static_cast<Nanos>(sim_.fault_prng().below(static_cast<std::uint64_t>(span) + 1)); }
    Nanos metadata_ready(bool shared);
    Nanos transfer_ready(const SimFile& file, std::uint64_t bytes);
    void begin_transfer(const OperationPtr& operation, const SimFile& file, bool writes);
    template <typename On>  // a path, or an open file
    OperationPtr make(Kind kind, const char* what, On on) {
        return std::make_shared<Operation>(process_, clock_, kind, what, std::move(on));
    }
    OperationPtr on_path(const char* what, const std::string& path, bool takes_space,
                         std::function<Status(FileSystem&, Operation&)> effect);
    Task<Status> finish(OperationPtr operation, Nanos deadline);

    Process& process_;
    Simulation& sim_;
    Clock& clock_;
};

SimFile& sim_file(const FilePtr& file) { return static_cast<SimFile&>(*file); }

SimStorage::Target SimStorage::target_of(const std::string& path) {
    FileSystem& persistent = process_.node().covered() ? sim_.other_persistent() : sim_.persistent();
    persistent.set_bytes_max(sim_.model().persistent_bytes_max);
    process_.node().scratch().set_bytes_max(sim_.model().scratch_bytes_max);
    if (persistent.covers(path)) return {&persistent, true};
    if (process_.node().scratch().covers(path)) return {&process_.node().scratch(), false};
    return {};
}

Nanos SimStorage::metadata_ready(bool shared) {
    const Nanos from = shared && sim_.machine() ? sim_.machine()->metadata() : sim_.now();
    return from + jitter(shared ? sim_.model().persistent_latency : sim_.model().scratch_latency);
}

// By the mark, which is taken off the name; else, of a part, by its number.
std::optional<std::size_t> place_on_target(std::string& path, const Model& model) {
    const std::size_t targets = model.target_rates.size();
    if (targets == 0) return std::nullopt;
    std::string_view mark = target_mark;
    auto at = path.rfind(mark);
    const bool placed = at != std::string::npos;
    if (!placed) {
        const auto of = path.rfind("-of-");  // WORD-NUMBER-of-FILES
        at = of == std::string::npos || of == 0 ? of : path.rfind(mark = "-", of - 1);
    }
    if (at == std::string::npos) return std::nullopt;
    const std::size_t number = std::strtoul(path.c_str() + at + mark.size(), nullptr, 10);
    if (placed && model.targets_gone.count(number)) return std::nullopt;
    if (placed) path.resize(at);
    return number % targets;
}

// As a file system that is told by a call (placing.hpp): its targets are named by their numbers. Of one that is gone it knows nothing, and puts the file where it likes.
std::optional<std::size_t> told_target(const Placing& placing, const Model& model) {
    if (placing.by.empty() || placing.targets.empty() || model.target_rates.empty()) return std::nullopt;
    const std::size_t number = std::strtoul(placing.targets.front().c_str(), nullptr, 10);
    if (number >= model.target_rates.size() || model.targets_gone.count(number)) return std::nullopt;
    return number;
}

// Of a file with several stripes, where all of them are to be had.
std::vector<std::size_t> told_stripes(const Placing& placing, const Model& model) {
    std::vector<std::size_t> targets;
    for (const std::string& name : placing.targets) targets.push_back(std::strtoul(name.c_str(), nullptr, 10));
    const bool are_there = std::all_of(targets.begin(), targets.end(), [&](std::size_t each) { return each < model.target_rates.size() && !model.targets_gone.count(each); });
    if (placing.by.empty() || targets.size() < 2 || !are_there) targets.clear();
    return targets;
}

Nanos SimStorage::transfer_ready(const SimFile& file, std::uint64_t bytes) {
    const Model& model = sim_.model();
    const bool shared = file.shared;
    Nanos through = 0;
    if (shared) {
        if (const auto target = file.inode->target; target && *target < model.target_rates.size())
            through = sim_.target_pipe(*target).pass(sim_.now(), bytes, model.target_rates[*target]);
        const auto own = model.persistent_client_rates.find(process_.node().id());
        const double client_rate = own == model.persistent_client_rates.end() ? model.persistent_client_rate : own->second;
        through = std::max({through, sim_.persistent_pipe().pass(sim_.now(), bytes, model.persistent_rate),
                            process_.node().client_pipe.pass(sim_.now(), bytes, client_rate)});
    } else {
        through = process_.node().scratch_pipe.pass(sim_.now(), bytes, model.scratch_rate);
    }
    return through + jitter(shared ? model.persistent_latency : model.scratch_latency);
}

void SimStorage::begin_transfer(const OperationPtr& operation, const SimFile& file, bool writes) {
    Machine* machine = sim_.machine();
    const std::uint64_t bytes = operation->data.length;
    if (!machine) return begin(operation, transfer_ready(file, bytes));
    const Model& model = sim_.model();
    begin(operation, jitter(file.shared ? model.persistent_latency : model.scratch_latency), [&](std::function<void()> through) {
        const NodeId node = process_.node().id();
        if (!file.shared) return machine->scratch(node, bytes, std::move(through));
        const std::size_t target = file.inode->target.value_or(0);
        if (writes) machine->write_behind(node, file.inode->id, target, operation->offset, bytes, std::move(through));
        else machine->read(node, file.inode->id, target, operation->offset, bytes, 1, std::move(through));
    });
}

Task<Status> SimStorage::finish(OperationPtr operation, Nanos deadline) {
    while (!operation->done) {
        if (clock_.now() >= deadline)
            co_return deadline_passed(operation->path + ": " + operation->what + " did not return in time");
        co_await operation->changed.wait(deadline);
    }
    co_return operation->status;
}

OperationPtr SimStorage::on_path(const char* what, const std::string& path, bool takes_space,
                                 std::function<Status(FileSystem&, Operation&)> effect) {
    OperationPtr operation = make(Kind::metadata, what, path);
    operation->takes_space = takes_space;
    const Target target = target_of(path);
    operation->effect = [fs = target.fs, effect = std::move(effect)](Operation& op) {
        op.status = fs ? effect(*fs, op) : Status::from_errno(ENOENT, op.path);
    };
    begin(operation, metadata_ready(target.shared));
    return operation;
}

Task<Result<FilePtr>> SimStorage::open(std::string path, OpenOptions options, Nanos deadline) {
    const bool shared = target_of(path).shared;
    const NodeId node = process_.node().id();
    const OpenMode mode = options.mode;
    const char* what = mode == OpenMode::create ? "create" : "open";
    std::optional<std::size_t> on;
    const std::optional<std::size_t> told = shared && mode == OpenMode::create ? told_target(options.placing, sim_.model()) : std::nullopt;
    if (shared && mode == OpenMode::create) on = told ? told : place_on_target(path, sim_.model());
    Machine* const machine = sim_.machine();
    if (machine && shared && mode == OpenMode::create) {  // stripes of one after the other; small files anywhere
        const std::size_t targets = sim_.model().target_rates.size();
        on = (on ? *on * machine->model().stripes : checksum(as_bytes(path))) % targets;
    }
    const std::vector<std::size_t> stripes = shared && mode == OpenMode::create ? told_stripes(options.placing, sim_.model()) : std::vector<std::size_t>();
    const std::uint64_t stripe_bytes = options.placing.stripe_bytes;
    if (mode == OpenMode::write) sim_.note_before(process_, what, path);
    const bool twin = shared && mode == OpenMode::write && sim_.strikes(&Faults::twin_open);
    OperationPtr operation = on_path(what, path, mode == OpenMode::create, [=](FileSystem& fs, Operation& op) -> Status {
        Result<InodePtr> inode = mode == OpenMode::create ? fs.create(op.path, node) : fs.find(op.path);
        if (!inode.ok()) return inode.status();
        if ((*inode)->is_directory) return corrupt(op.path + ": it is a directory, not a file");
        if (mode == OpenMode::create) (*inode)->target = on;
        if (machine && !stripes.empty()) machine->lay((*inode)->id, stripes, stripe_bytes);
        if (twin) inode = fs.twin(**inode);
        auto file = std::make_shared<SimFile>(op.path, *inode, fs, shared, mode != OpenMode::read);
        file->placed = told.has_value();
        op.opened = std::move(file);
        return {};
    });
    Status status = co_await finish(operation, deadline);
    if (!status.ok()) co_return status;
    co_return operation->opened;
}

Task<Result<std::uint64_t>> SimStorage::write_some(FilePtr file, std::uint64_t offset, Slice data, Nanos deadline) {
    SimFile& target = sim_file(file);
    if (!target.writable) co_return Status::from_errno(EBADF, file->path());
    if (data.length > INT64_MAX || offset > INT64_MAX - data.length) co_return Status::from_errno(EFBIG, file->path());
    sim_.note_before(process_, "write", file->path());
    OperationPtr operation = make(Kind::write, "write", file);
    operation->takes_space = true;
    operation->data = data;
    operation->offset = offset;
    operation->value = data.length;
    const bool grow_lost = target.shared && sim_.strikes(&Faults::grow_lost);
    const bool lose_earlier = grow_lost && sim_.fault_prng().chance(0.5);
    operation->effect = [node = process_.node().id(), grow_lost, lose_earlier](Operation& op) {
        SimFile& to = sim_file(op.file);
        const std::uint64_t room = to.fs.room(*to.inode, op.offset, op.value);
        if (room == 0 && op.value > 0) {
            op.status = Status::from_errno(ENOSPC, op.path);
            return;
        }
        op.value = room;
        const bool grows = op.offset + op.value > to.inode->content->size();
        const std::optional<Inode::Growth> before = to.inode->grown;
        if (grows) to.inode->grown = Inode::Growth{node, op.offset, op.value};
        if (grow_lost && grows && before && before->node != node) {
            if (!lose_earlier) return to.fs.resize(*to.inode, op.offset + op.value, node);
            to.fs.write(*to.inode, before->offset, Content().read(0, before->length), node);
        }
        Runs runs = op.captured ? std::move(*op.captured) : runs_of(op.data);
        if (op.value < op.data.length) runs = part_of(runs, 0, op.value);
        to.fs.write(*to.inode, op.offset, std::move(runs), node);
    };
    begin_transfer(operation, target, true);
    Status status = co_await finish(operation, deadline);
    if (!status.ok()) co_return status;
    co_return operation->value;
}

Task<Result<std::uint64_t>> SimStorage::read_some(FilePtr file, std::uint64_t offset, Slice into, Nanos deadline) {
    OperationPtr operation = make(Kind::read, "read", file);
    operation->data = into;
    operation->offset = offset;
    operation->value = into.length;
    operation->effect = [](Operation& op) {
        if (op.fails) return;
        const Content& content = *sim_file(op.file).inode->content;
        op.value = op.offset >= content.size() ? 0 : std::min(op.value, content.size() - op.offset);
        Runs runs = content.read(op.offset, op.value);
        if (op.stale_from && *op.stale_from < op.value) {
            runs = part_of(runs, 0, *op.stale_from);
            runs.push_back({.kind = Run::Kind::hole, .length = op.value - *op.stale_from});
        }
        put(op.data, runs);
    };
    begin_transfer(operation, sim_file(file), false);
    Status status = co_await finish(operation, deadline);
    if (!status.ok()) co_return status;
    co_return operation->value;
}

namespace {

// What a thread reads into, which is no buffer of the engine's.
Slice staging_of(std::uint64_t length) {
    auto content = std::make_shared<Content>();
    content->resize(length);
    return Slice::whole(std::make_shared<SimBuffer>(std::move(content), length, std::make_shared<std::uint64_t>(0)));
}

// Of a read that failed: bytes that are none of the file's, so that who believes them is found.
void put_garbage(const std::vector<Destination>& into) {
    for (const Destination& each : into) put(each.into, runs_of_description(mix(each.at ^ 0x6c616e64), 0, each.into.length));
}

}  // namespace

// Its bytes arrive at their destinations in one moment, or others in their place.
Task<Result<std::vector<std::uint64_t>>> SimStorage::read_checksummed(FilePtr file, std::uint64_t offset, std::uint64_t length, Units units, std::vector<Destination> into, Nanos deadline) {
    const Slice staged = staging_of(length);
    Status read = co_await read_all(*this, std::move(file), offset, staged, deadline);
    if (!read.ok()) {
        put_garbage(into);
        co_return read;
    }
    const Nanos ready = process_.checksum_pipe().pass(sim_.now(), length, sim_.model().checksum_rate);
    co_await clock_.sleep(ready - sim_.now());
    const Runs runs = runs_of(staged);
    for (const Destination& each : into) put(each.into, part_of(runs, each.at, each.into.length));
    co_return checksums_of(runs, units);
}

Task<Status> SimStorage::fsync(FilePtr file, Nanos deadline) {
    OperationPtr operation = make(Kind::fsync, "fsync", file);
    operation->effect = [node = process_.node().id(), this](Operation& op) {
        SimFile& target = sim_file(op.file);
        if (op.fails) target.fs.fail_fsync(*target.inode, node, sim_.fault_prng());
        else target.fs.fsync(*target.inode, node);
    };
    const SimFile& synced = sim_file(file);
    const Nanos ready = metadata_ready(synced.shared) + (synced.shared ? jitter(sim_.model().fsync_latency) : 0);
    Machine* const machine = sim_.machine();
    if (machine && synced.shared && machine->model().write_behind_bytes > 0) {
        begin(operation, ready - sim_.now(), [&](std::function<void()> through) { machine->finish(process_.node().id(), synced.inode->id, std::move(through)); });
    } else {
        begin(operation, ready);
    }
    Status status = co_await finish(operation, deadline);
    co_return status;
}

Task<Result<std::uint64_t>> SimStorage::file_bytes(FilePtr file, Nanos deadline) {
    OperationPtr operation = make(Kind::metadata, "stat", file);
    operation->effect = [](Operation& op) { op.value = sim_file(op.file).inode->content->size(); };
    begin(operation, metadata_ready(sim_file(file).shared));
    Status status = co_await finish(operation, deadline);
    if (!status.ok()) co_return status;
    co_return operation->value;
}

Task<Status> SimStorage::resize(FilePtr file, std::uint64_t bytes, Nanos deadline) {
    if (!sim_file(file).writable) co_return Status::from_errno(EINVAL, file->path());
    if (bytes > INT64_MAX) co_return Status::from_errno(EFBIG, file->path());
    sim_.note_before(process_, "resize", file->path());
    OperationPtr operation = make(Kind::metadata, "resize", file);
    operation->takes_space = true;
    operation->value = bytes;
    const bool lost = sim_file(file).shared && sim_.strikes(&Faults::resize_lost);
    operation->effect = [node = process_.node().id(), lost](Operation& op) {
        SimFile& target = sim_file(op.file);
        if (!lost) target.fs.resize(*target.inode, op.value, node);
    };
    begin(operation, metadata_ready(sim_file(file).shared));
    Status status = co_await finish(operation, deadline);
    co_return status;
}

Task<Status> SimStorage::make_directory(std::string path, std::uint32_t, Nanos deadline) {
    OperationPtr operation = on_path("mkdir", path, true, [node = process_.node().id()](FileSystem& fs, Operation& op) {
        return fs.make_directory(op.path, node);
    });
    Status status = co_await finish(operation, deadline);
    co_return status;
}

Task<Status> SimStorage::fsync_directory(std::string path, Nanos deadline) {
    OperationPtr operation = make(Kind::fsync, "fsync_directory", path);
    const Target target = target_of(path);
    operation->effect = [fs = target.fs](Operation& op) {
        if (op.fails) return;  // the entries stay as undecided as they were
        op.status = fs ? fs->fsync_directory(op.path) : Status::from_errno(ENOENT, op.path);
    };
    begin(operation, metadata_ready(target.shared) + (target.shared ? jitter(sim_.model().fsync_latency) : 0));
    Status status = co_await finish(operation, deadline);
    co_return status;
}

Task<Status> SimStorage::publish(std::string from, std::string to, Nanos deadline) {
    sim_.note_before(process_, "publish", to);
    const bool rename = sim_.strikes(&Faults::publish_renames);
    const bool same = target_of(from).fs == target_of(to).fs;
    OperationPtr operation =
        on_path("publish", to, false, [=, node = process_.node().id()](FileSystem& fs, Operation& op) -> Status {
            if (!same) return Status::from_errno(EXDEV, from);
            Status published = fs.publish(from, op.path, rename, node);
            if (published.ok()) op.process.simulation().note(op.process, "published", op.path);
            return published;
        });
    Status status = co_await finish(operation, deadline);
    co_return status;
}

Task<Status> SimStorage::replace(std::string from, std::string to, Nanos deadline) {
    const bool same = target_of(from).fs == target_of(to).fs;
    OperationPtr operation =
        on_path("replace", to, false, [=, node = process_.node().id()](FileSystem& fs, Operation& op) -> Status {
            if (!same) return Status::from_errno(EXDEV, from);
            return fs.replace(from, op.path, node);
        });
    Status status = co_await finish(operation, deadline);
    co_return status;
}

Task<Status> SimStorage::remove(std::string path, Nanos deadline) {
    OperationPtr operation = on_path("remove", path, false, [node = process_.node().id()](FileSystem& fs, Operation& op) {
        return fs.remove(op.path, node);
    });
    Status status = co_await finish(operation, deadline);
    co_return status;
}

Task<Status> SimStorage::remove_directory(std::string path, Nanos deadline) {
    OperationPtr operation = on_path("rmdir", path, false, [node = process_.node().id()](FileSystem& fs, Operation& op) {
        return fs.remove_directory(op.path, node);
    });
    Status status = co_await finish(operation, deadline);
    co_return status;
}

Task<Result<std::vector<DirectoryEntry>>> SimStorage::list(std::string path, Nanos deadline) {
    OperationPtr operation = on_path("list", path, false, [](FileSystem& fs, Operation& op) -> Status {
        Result<std::vector<DirectoryEntry>> entries = fs.list(op.path);
        if (!entries.ok()) return entries.status();
        op.entries = std::move(*entries);
        return {};
    });
    Status status = co_await finish(operation, deadline);
    if (!status.ok()) co_return status;
    co_return std::move(operation->entries);
}

Task<Result<std::uint64_t>> SimStorage::free_bytes(std::string directory, Nanos deadline) {
    const Faults& faults = sim_.faults();
    const bool seems_full = !faults.below.empty() && directory.starts_with(faults.below) && faults.below_is == Faults::Below::seems_full;
    const bool untrue = target_of(directory).shared && (seems_full || sim_.strikes(&Faults::room_untrue));
    OperationPtr operation = on_path("statvfs", directory, false, [untrue](FileSystem& fs, Operation& op) -> Status {
        const Result<InodePtr> there = fs.find(op.path);
        op.value = untrue ? 0 : fs.free_bytes();
        return there.status();
    });
    Status status = co_await finish(operation, deadline);
    if (!status.ok()) co_return status;
    co_return operation->value;
}

// What holds described bytes, or is large, has no data(): its header is read and written through files.
Task<Result<BufferPtr>> SimStorage::map(std::string path, bool, Nanos deadline) {
    if (target_of(path).shared) co_return invalid_argument(path + ": only files of scratch can be mapped");
    const std::uint64_t bytes_max = sim_.model().map_bytes_max;
    OperationPtr operation = on_path("map", path, false, [bytes_max](FileSystem& fs, Operation& op) -> Status {
        Result<InodePtr> inode = fs.find(op.path);
        if (!inode.ok()) return inode.status();
        if ((*inode)->is_directory) return Status::from_errno(EISDIR, op.path);
        const std::shared_ptr<Content>& content = (*inode)->content;
        const std::uint64_t size = content->size();
        if (size == 0) return Status::from_errno(EINVAL, op.path);
        if (size <= bytes_max && content->can_flatten()) {
            std::byte* data = content->flatten();
            (*inode)->account();
            op.buffer = std::make_shared<FlatBuffer>(content, data, size);
        } else {
            op.buffer = std::make_shared<SimBuffer>(content, size);
        }
        return {};
    });
    Status status = co_await finish(operation, deadline);
    if (!status.ok()) co_return status;
    co_return operation->buffer;
}

}  // namespace

std::unique_ptr<Storage> make_storage(Process& process, Clock& clock) { return std::make_unique<SimStorage>(process, clock); }

}  // namespace cairn::sim
