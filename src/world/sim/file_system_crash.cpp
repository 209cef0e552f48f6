// What is left after a crash, and damage on demand.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "world/sim/file_system.hpp"

namespace cairn::sim {

namespace {

constexpr std::uint64_t sector_bytes = 512;

Runs whole(const Content& content) { return content.size() == 0 ? Runs{} : content.read(0, content.size()); }

// Keeps some run of sectors of the write: a prefix, a suffix or the middle.
void tear(Inode::PendingWrite& write, Prng& prng) {
    const std::uint64_t length = length_of(write.runs);
    const std::uint64_t sectors = (length + sector_bytes - 1) / sector_bytes;
    const std::uint64_t first = prng.chance(0.5) ? 0 : prng.below(sectors);
    const std::uint64_t from = first * sector_bytes;
    const std::uint64_t to = std::min(length, from + prng.below(sectors - first + 1) * sector_bytes);
    write.runs = part_of(write.runs, from, to - from);
    write.offset += from;
}

}  // namespace

void FileSystem::rebuild(Inode& inode) {
    if (inode.is_directory) {
        inode.entries = inode.durable_entries;
        for (const Inode::PendingEntries& pending : inode.pending_entries)
            for (const auto& [name, target] : pending.changes) {
                if (target) inode.entries[name] = target;
                else inode.entries.erase(name);
            }
        return;
    }
    // In place: files that are open see it too.
    Content& seen = *inode.content;
    seen.resize(0);
    seen.write(0, whole(inode.durable));
    seen.resize(inode.durable.size());
    for (const Inode::PendingWrite& write : inode.pending) {
        if (write.is_resize) seen.resize(write.size);
        else seen.write(write.offset, write.runs);
    }
    inode.account();
}

// mood 0: nothing unsynced stays; 1: all of it does; else a coin for each change.
void FileSystem::crash_inode(Inode& inode, NodeId node, Prng& prng, unsigned mood) {
    using Fate = Inode::PendingWrite::Fate;
    const auto stays = [&] { return mood == 0 ? false : mood == 1 ? true : prng.chance(0.5); };
    std::vector<Inode::PendingWrite> writes;
    for (Inode::PendingWrite& write : inode.pending) {
        if (write.node == node && write.fate == Fate::doomed) continue;
        if (write.node == node && write.fate == Fate::open) {
            if (!stays()) {
                if (mood < 2 || write.is_resize || !prng.chance(0.5)) continue;
                tear(write, prng);
            }
            write.fate = Fate::settled;
        }
        writes.push_back(std::move(write));
    }
    inode.pending = std::move(writes);
    std::vector<Inode::PendingEntries> entries;
    for (Inode::PendingEntries& pending : inode.pending_entries) {
        if (pending.node == node && !pending.settled) {
            if (!stays()) continue;
            pending.settled = true;
        }
        entries.push_back(std::move(pending));
    }
    inode.pending_entries = std::move(entries);
    settle(inode);
    rebuild(inode);
    changed(inode);
}

void FileSystem::crash(NodeId node, Prng& prng, Faults::Unsynced unsynced) {
    if (!durable_ || all_.size() <= 1) return;  // nothing but its root
    const auto mood = unsynced == Faults::Unsynced::drawn ? static_cast<unsigned>(prng.below(4)) : static_cast<unsigned>(unsynced);
    for (auto it = all_.begin(); it != all_.end();) {
        const InodePtr inode = it->second.lock();
        if (!inode) {
            it = all_.erase(it);
            continue;
        }
        const auto ours = [&](const auto& pending) { return pending.node == node; };
        if (std::any_of(inode->pending.begin(), inode->pending.end(), ours) ||
            std::any_of(inode->pending_entries.begin(), inode->pending_entries.end(), ours))
            crash_inode(*inode, node, prng, mood);
        ++it;
    }
    std::vector<InodePtr> alive;
    for (auto& [id, weak] : all_)
        if (InodePtr inode = weak.lock()) inode->links = 0, alive.push_back(std::move(inode));
    for (const InodePtr& inode : alive)
        for (auto& [name, target] : inode->entries) target->links++;
    for (const InodePtr& inode : alive) inode->account();
}

std::shared_ptr<Content> FileSystem::kept(const Inode& inode) {
    using Fate = Inode::PendingWrite::Fate;
    auto content = std::make_shared<Content>();
    content->write(0, whole(inode.durable));
    content->resize(inode.durable.size());
    for (const Inode::PendingWrite& write : inode.pending) {
        if (write.fate != Fate::synced && write.fate != Fate::settled) continue;
        if (write.is_resize) content->resize(write.size);
        else content->write(write.offset, write.runs);
    }
    return content;
}

namespace {

InodePtr kept_entry(const Inode& directory, const std::string& name) {
    for (auto pending = directory.pending_entries.rbegin(); pending != directory.pending_entries.rend(); ++pending)
        if (pending->settled)
            for (const auto& [changed, inode] : pending->changes)
                if (changed == name) return inode;
    const auto entry = directory.durable_entries.find(name);
    return entry == directory.durable_entries.end() ? nullptr : entry->second;
}

}  // namespace

Result<InodePtr> FileSystem::find_kept(const std::string& path) const {
    if (!covers(path)) return Status::from_errno(ENOENT, path);
    InodePtr at = root_;
    for (std::size_t begin = prefix_.size(), end = 0; begin < path.size(); begin = end) {
        begin = path.find_first_not_of('/', begin);
        if (begin == std::string::npos) break;
        end = std::min(path.find('/', begin), path.size());
        if (!at->is_directory) return Status::from_errno(ENOTDIR, path);
        at = kept_entry(*at, path.substr(begin, end - begin));
        if (!at) return Status::from_errno(ENOENT, path);
    }
    return at;
}

Status FileSystem::flip_bit(const std::string& path, std::uint64_t byte, unsigned bit) {
    Result<InodePtr> inode = find(path);
    if (!inode.ok()) return inode.status();
    if ((*inode)->is_directory || byte >= (*inode)->content->size())
        return Status(Code::invalid_argument, path + ": has no byte " + std::to_string(byte));
    (*inode)->content->flip_bit(byte, bit);
    if (durable_ && byte < (*inode)->durable.size()) (*inode)->durable.flip_bit(byte, bit);
    (*inode)->account();
    changed(**inode);
    return {};
}

Status FileSystem::truncate(const std::string& path, std::uint64_t bytes) {
    Result<InodePtr> inode = find(path);
    if (!inode.ok()) return inode.status();
    if ((*inode)->is_directory) return Status::from_errno(EISDIR, path);
    (*inode)->content->resize(bytes);
    (*inode)->account();
    if (durable_) {
        (*inode)->pending.clear();
        (*inode)->durable.resize(0);
        (*inode)->durable.write(0, whole(*(*inode)->content));
        (*inode)->durable.resize(bytes);
    }
    changed(**inode);
    return {};
}

Status FileSystem::lose(const std::string& path) {
    Result<Place> at = place(path);
    if (!at.ok()) return at.status();
    const auto entry = at->directory->entries.find(at->name);
    if (entry == at->directory->entries.end()) return Status::from_errno(ENOENT, path);
    change(*at->directory, 0, {{at->name, nullptr}});
    if (durable_) {
        at->directory->durable_entries.erase(at->name);
        at->directory->pending_entries.back().settled = true;
    }
    return {};
}

}  // namespace cairn::sim
