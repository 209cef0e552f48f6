// Names, contents, and what of them is durable.
#include "world/sim/file_system.hpp"

#include <algorithm>
#include <cerrno>

namespace cairn::sim {

namespace {

void apply_changes(Entries& entries, const std::vector<std::pair<std::string, InodePtr>>& changes) {
    for (const auto& [name, inode] : changes) {
        if (inode) entries[name] = inode;
        else entries.erase(name);
    }
}

void apply_write(Content& content, const Inode::PendingWrite& write) {
    if (write.is_resize) content.resize(write.size);
    else content.write(write.offset, write.runs);
}

}  // namespace

Inode::~Inode() { *used -= accounted; }

void Inode::account() {
    if (is_directory) return;
    const std::uint64_t now = links > 0 ? content->stored_bytes() : 0;
    *used += now - accounted;
    accounted = now;
}

FileSystem::FileSystem(std::string prefix, bool durable, std::uint64_t bytes_max)
    : prefix_(std::move(prefix)), durable_(durable), bytes_max_(bytes_max), root_(make_inode(true)) {}

bool FileSystem::covers(const std::string& path) const {
    return path.compare(0, prefix_.size(), prefix_) == 0 && (path.size() == prefix_.size() || path[prefix_.size()] == '/');
}

InodePtr FileSystem::make_inode(bool is_directory) {
    auto inode = std::make_shared<Inode>();
    inode->id = next_id_++;
    inode->is_directory = is_directory;
    inode->used = used_;
    if (!is_directory) inode->content = std::make_shared<Content>();
    if (durable_) all_[inode->id] = inode;
    return inode;
}

Result<FileSystem::Place> FileSystem::place(const std::string& path) const {
    if (!covers(path)) return Status::from_errno(ENOENT, path);
    Place result{root_, ""};
    for (std::size_t at = prefix_.size(); at < path.size();) {
        const std::size_t start = path.find_first_not_of('/', at);
        if (start == std::string::npos) break;
        const std::size_t end = std::min(path.find('/', start), path.size());
        if (!result.name.empty()) {
            const auto next = result.directory->entries.find(result.name);
            if (next == result.directory->entries.end()) return Status::from_errno(ENOENT, path);
            if (!next->second->is_directory) return Status::from_errno(ENOTDIR, path);
            result.directory = next->second;
        }
        result.name = path.substr(start, end - start);
        if (result.name.size() > 255) return Status::from_errno(ENAMETOOLONG, path);
        at = end;
    }
    return result;
}

Result<InodePtr> FileSystem::find(const std::string& path) const {
    Result<Place> at = place(path);
    if (!at.ok()) return at.status();
    if (at->name.empty()) return root_;
    const auto entry = at->directory->entries.find(at->name);
    if (entry == at->directory->entries.end()) return Status::from_errno(ENOENT, path);
    return entry->second;
}

void FileSystem::change(Inode& directory, NodeId node, std::vector<std::pair<std::string, InodePtr>> changes) {
    for (const auto& [name, inode] : changes) {
        const auto old = directory.entries.find(name);
        if (old != directory.entries.end()) old->second->links--, old->second->account();
        if (inode) inode->links++, inode->account();
    }
    apply_changes(directory.entries, changes);
    changed(directory);
    if (durable_) directory.pending_entries.push_back({node, false, std::move(changes)});
}

Result<InodePtr> FileSystem::create(const std::string& path, NodeId node) {
    Result<Place> at = place(path);
    if (!at.ok()) return at.status();
    if (at->name.empty() || at->directory->entries.count(at->name)) return Status::from_errno(EEXIST, path);
    InodePtr inode = make_inode(false);
    change(*at->directory, node, {{at->name, inode}});
    return inode;
}

InodePtr FileSystem::twin(const Inode& inode) {
    InodePtr other = make_inode(inode.is_directory);
    if (!inode.is_directory) other->content->resize(inode.content->size());
    other->target = inode.target;
    return other;
}

Status FileSystem::make_directory(const std::string& path, NodeId node) {
    Result<Place> at = place(path);
    if (!at.ok()) return at.status();
    if (at->name.empty() || at->directory->entries.count(at->name)) return Status::from_errno(EEXIST, path);
    change(*at->directory, node, {{at->name, make_inode(true)}});
    return {};
}

Status FileSystem::publish(const std::string& from, const std::string& to, bool rename, NodeId node) {
    Result<Place> source = place(from), target = place(to);
    if (!source.ok()) return source.status();
    if (!target.ok()) return target.status();
    const auto entry = source->directory->entries.find(source->name);
    if (entry == source->directory->entries.end()) return Status::from_errno(ENOENT, from);
    if (entry->second->is_directory) return Status::from_errno(EPERM, from);
    if (target->name.empty() || target->directory->entries.count(target->name)) return Status::from_errno(EEXIST, to);
    std::vector<std::pair<std::string, InodePtr>> changes{{target->name, entry->second}};
    if (rename && source->directory == target->directory) changes.emplace_back(source->name, nullptr);
    change(*target->directory, node, std::move(changes));
    return {};
}

Status FileSystem::replace(const std::string& from, const std::string& to, NodeId node) {
    Result<Place> source = place(from), target = place(to);
    if (!source.ok()) return source.status();
    if (!target.ok()) return target.status();
    if (source->directory != target->directory) return Status::from_errno(EXDEV, to);  // nobody asks for it, and it would be two effects
    const auto entry = source->directory->entries.find(source->name);
    if (entry == source->directory->entries.end()) return Status::from_errno(ENOENT, from);
    const auto old = target->directory->entries.find(target->name);
    if (old != target->directory->entries.end() && old->second->is_directory) return Status::from_errno(EISDIR, to);
    const InodePtr inode = entry->second;
    if (old != target->directory->entries.end() && old->second == inode) return {};  // as rename(2) has it
    change(*target->directory, node, {{target->name, inode}, {source->name, nullptr}});
    return {};
}

Status FileSystem::remove(const std::string& path, NodeId node) {
    Result<Place> at = place(path);
    if (!at.ok()) return at.status();
    const auto entry = at->directory->entries.find(at->name);
    if (entry == at->directory->entries.end()) return Status::from_errno(ENOENT, path);
    if (entry->second->is_directory) return Status::from_errno(EISDIR, path);
    change(*at->directory, node, {{at->name, nullptr}});
    return {};
}

Status FileSystem::remove_directory(const std::string& path, NodeId node) {
    Result<Place> at = place(path);
    if (!at.ok()) return at.status();
    if (at->name.empty()) return Status::from_errno(EBUSY, path);
    const auto entry = at->directory->entries.find(at->name);
    if (entry == at->directory->entries.end()) return Status::from_errno(ENOENT, path);
    if (!entry->second->is_directory) return Status::from_errno(ENOTDIR, path);
    if (!entry->second->entries.empty()) return Status::from_errno(ENOTEMPTY, path);
    change(*at->directory, node, {{at->name, nullptr}});
    return {};
}

Result<std::vector<DirectoryEntry>> FileSystem::list(const std::string& path) const {
    Result<InodePtr> directory = find(path);
    if (!directory.ok()) return directory.status();
    if (!(*directory)->is_directory) return Status::from_errno(ENOTDIR, path);
    std::vector<DirectoryEntry> result;
    for (const auto& [name, inode] : (*directory)->entries)
        result.push_back({name, inode->is_directory, inode->is_directory ? 0 : inode->content->size()});
    return result;
}

std::uint64_t FileSystem::room(const Inode& inode, std::uint64_t offset, std::uint64_t wanted) const {
    if (bytes_max_ == UINT64_MAX) return wanted;
    // What is overwritten frees its space first; only the part past the stored bytes is counted, as an estimate from below.
    const std::uint64_t free = free_bytes();
    const std::uint64_t size = inode.content->size();
    const std::uint64_t overwritten = offset < size ? length_of(inode.content->read(offset, std::min(wanted, size - offset))) : 0;
    return std::min(wanted, overwritten > UINT64_MAX - free ? wanted : free + overwritten);
}

void FileSystem::add_pending(Inode& inode, Inode::PendingWrite write) {
    apply_write(*inode.content, write);
    inode.account();
    changed(inode);
    if (durable_) inode.pending.push_back(std::move(write));
}

void FileSystem::write(Inode& inode, std::uint64_t offset, Runs runs, NodeId node) {
    Inode::PendingWrite write;
    write.node = node;
    write.offset = offset;
    write.runs = std::move(runs);
    add_pending(inode, std::move(write));
}

void FileSystem::resize(Inode& inode, std::uint64_t bytes, NodeId node) {
    Inode::PendingWrite write;
    write.node = node;
    write.is_resize = true;
    write.size = bytes;
    add_pending(inode, std::move(write));
}

void FileSystem::settle(Inode& inode) {
    std::size_t decided = 0;
    using Fate = Inode::PendingWrite::Fate;
    while (decided < inode.pending.size() &&
           (inode.pending[decided].fate == Fate::synced || inode.pending[decided].fate == Fate::settled))
        apply_write(inode.durable, inode.pending[decided++]);
    inode.pending.erase(inode.pending.begin(), inode.pending.begin() + static_cast<std::ptrdiff_t>(decided));
}

void FileSystem::fsync(Inode& inode, NodeId node) {
    for (Inode::PendingWrite& write : inode.pending)
        if (write.node == node && write.fate == Inode::PendingWrite::Fate::open) write.fate = Inode::PendingWrite::Fate::synced;
    settle(inode);
    changed(inode);
}

void FileSystem::fail_fsync(Inode& inode, NodeId node, Prng& prng) {
    using Fate = Inode::PendingWrite::Fate;
    std::vector<Inode::PendingWrite> kept;
    for (Inode::PendingWrite& write : inode.pending) {
        const bool ours = write.node == node && write.fate == Fate::open;
        if (ours && prng.chance(0.3)) continue;  // its page is gone already
        if (ours && prng.chance(0.6)) write.fate = Fate::doomed;
        kept.push_back(std::move(write));
    }
    inode.pending = std::move(kept);
    rebuild(inode);
    changed(inode);
}

Status FileSystem::fsync_directory(const std::string& path) {
    Result<InodePtr> directory = find(path);
    if (!directory.ok()) return directory.status();
    if (!(*directory)->is_directory) return Status::from_errno(ENOTDIR, path);
    if (!durable_) return {};
    (*directory)->durable_entries = (*directory)->entries;
    (*directory)->pending_entries.clear();
    changed(**directory);
    return {};
}

}  // namespace cairn::sim
