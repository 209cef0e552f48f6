// FileSystem: the names and contents behind simulated storage, without time. Operations take effect at once and whole.
//
// A durable file system (the persistent one) keeps beside what everybody sees also what has been fsynced, and the changes since, each
// with the node that made it. When that node crashes, the seed decides for each of its changes whether it stays, goes, or (a
// write) stays in part; what is seen afterwards is the durable state with the surviving changes applied in their order:
//  - fsync of a file makes the calling node's writes to it durable, and its size;
//  - fsync_directory makes every entry of the directory durable, whoever made it;
//  - a failed fsync dooms the node's unsynced writes: each is lost at once or at the next crash, and no later fsync saves it.
// A scratch file system (a tmpfs) keeps no second state: a crash drops it as a whole.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "world/sim/content.hpp"
#include "world/sim/model.hpp"
#include "world/sim/prng.hpp"
#include "world/storage.hpp"

namespace cairn::sim {

using NodeId = std::uint32_t;

struct Inode;
using InodePtr = std::shared_ptr<Inode>;
using Entries = std::map<std::string, InodePtr>;

struct Inode {
    // A write or a resize that is not durable yet.
    struct PendingWrite {
        NodeId node = 0;
        std::uint64_t offset = 0;
        Runs runs;
        bool is_resize = false;
        std::uint64_t size = 0;
        enum class Fate : std::uint8_t { open, synced, doomed, settled } fate = Fate::open;
    };
    // An effect on one directory: names set, or removed (null). All of it or nothing survives.
    struct PendingEntries {
        NodeId node = 0;
        bool settled = false;
        std::vector<std::pair<std::string, InodePtr>> changes;
    };

    std::uint64_t id = 0;
    bool is_directory = false;
    std::shared_ptr<Content> content;  // files: as seen
    Content durable;
    std::vector<PendingWrite> pending;
    Entries entries;  // directories: as seen
    Entries durable_entries;
    std::vector<PendingEntries> pending_entries;
    std::uint32_t links = 0;              // names seen
    std::shared_ptr<std::uint64_t> used;  // of the file system
    std::uint64_t accounted = 0;
    std::uint64_t changes = 0;            // so far
    std::optional<std::size_t> target;    // files: where it was placed
    struct Growth { NodeId node = 0; std::uint64_t offset = 0, length = 0; };
    std::optional<Growth> grown;          // files: the last write that made it longer

    ~Inode();
    void account();  // after a change of content or links
};

class FileSystem {
  public:
    // `prefix` is the path of its root, which exists and is durable.
    FileSystem(std::string prefix, bool durable, std::uint64_t bytes_max);

    bool covers(const std::string& path) const;
    void set_bytes_max(std::uint64_t bytes_max) { bytes_max_ = bytes_max; }
    std::uint64_t used_bytes() const { return *used_; }
    std::uint64_t free_bytes() const { return bytes_max_ > *used_ ? bytes_max_ - *used_ : 0; }

    Result<InodePtr> find(const std::string& path) const;
    // What would be there, and in it, if every node crashed now and all that is not durable went.
    Result<InodePtr> find_kept(const std::string& path) const;
    static std::shared_ptr<Content> kept(const Inode& inode);
    Result<InodePtr> create(const std::string& path, NodeId node);
    InodePtr twin(const Inode& inode);  // a file without a name, as large, all zeros
    Status make_directory(const std::string& path, NodeId node);
    Status publish(const std::string& from, const std::string& to, bool rename, NodeId node);
    Status replace(const std::string& from, const std::string& to, NodeId node);
    Status remove(const std::string& path, NodeId node);
    Status remove_directory(const std::string& path, NodeId node);
    Result<std::vector<DirectoryEntry>> list(const std::string& path) const;

    // Bytes of `wanted` at `offset` that still fit.
    std::uint64_t room(const Inode& inode, std::uint64_t offset, std::uint64_t wanted) const;
    void write(Inode& inode, std::uint64_t offset, Runs runs, NodeId node);
    void resize(Inode& inode, std::uint64_t bytes, NodeId node);
    void fsync(Inode& inode, NodeId node);
    void fail_fsync(Inode& inode, NodeId node, Prng& prng);
    Status fsync_directory(const std::string& path);

    void crash(NodeId node, Prng& prng, Faults::Unsynced unsynced = Faults::Unsynced::drawn);

    // For whoever compares states: grows with every change of names, bytes, or what of them is durable. So does Inode::changes, of one of them.
    std::uint64_t changes() const { return changes_; }
    InodePtr root() const { return root_; }

    // For tests, behind everybody's back: what a bad disk or a careless person does. Durable at once.
    Status flip_bit(const std::string& path, std::uint64_t byte, unsigned bit);
    Status truncate(const std::string& path, std::uint64_t bytes);
    Status lose(const std::string& path);  // a file, or a directory with all below it

  private:
    struct Place {
        InodePtr directory;
        std::string name;
    };
    Result<Place> place(const std::string& path) const;  // the directory must exist, the name need not
    InodePtr make_inode(bool is_directory);
    void change(Inode& directory, NodeId node, std::vector<std::pair<std::string, InodePtr>> changes);
    void add_pending(Inode& inode, Inode::PendingWrite write);
    void changed(Inode& inode) { ++inode.changes, ++changes_; }
    void settle(Inode& inode);   // moves what is decided into the durable content
    void rebuild(Inode& inode);  // what is seen, from the durable state and what is pending
    void crash_inode(Inode& inode, NodeId node, Prng& prng, unsigned mood);

    std::string prefix_;
    bool durable_;
    std::uint64_t bytes_max_;
    std::uint64_t next_id_ = 1;
    std::uint64_t changes_ = 0;
    std::shared_ptr<std::uint64_t> used_ = std::make_shared<std::uint64_t>(0);
    std::map<std::uint64_t, std::weak_ptr<Inode>> all_;  // of a durable file system
    InodePtr root_;
};

}  // namespace cairn::sim
