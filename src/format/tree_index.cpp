#include "format/tree_index.hpp"

#include <algorithm>

#include "format/check.hpp"
#include "format/fields.hpp"
#include "format/frame.hpp"
#include "tree_index_generated.h"

namespace cairn {

using check::refuse;

namespace {

// Components that are names and nothing else: no way up, none to the root, none out of a component.
bool path_valid(std::string_view path) {
    if (path.size() > tree_path_bytes_max || path.find('\0') != path.npos) return false;
    for (std::size_t from = 0; from <= path.size();) {
        const std::size_t end = std::min(path.find('/', from), path.size());
        const std::string_view component = path.substr(from, end - from);
        if (component.empty() || component == "." || component == "..") return false;
        from = end + 1;
    }
    return true;
}

bool attributes_valid(const std::vector<TreeAttribute>& attributes) {
    for (std::size_t i = 0; i < attributes.size(); ++i) {
        const TreeAttribute& each = attributes[i];
        if (each.name.empty() || each.name.size() > attribute_name_bytes_max || each.name.find('\0') != std::string::npos) return false;
        if (each.value.size() > attribute_value_bytes_max || (i > 0 && each.name <= attributes[i - 1].name)) return false;
    }
    return true;
}

bool holes_valid(const TreeEntry& entry) {
    std::uint64_t from = 0;
    for (const TreeHole& hole : entry.holes) {
        if (hole.offset < from || hole.length == 0 || hole.offset > entry.bytes || hole.length > entry.bytes - hole.offset) return false;
        from = hole.offset + hole.length;
    }
    return true;
}

// What only entries of some kinds have.
bool fits_kind(const TreeEntry& entry) {
    const bool file = entry.kind == TreeEntryKind::file, link = entry.kind == TreeEntryKind::symbolic_link;
    const bool device = entry.kind == TreeEntryKind::character_device || entry.kind == TreeEntryKind::block_device;
    if (!file && (entry.bytes != 0 || !entry.region.empty() || !entry.holes.empty())) return false;
    if (entry.bytes > bytes_max || (!entry.region.empty() && !valid_region_name(entry.region))) return false;
    if (link == entry.target.empty() || entry.target.size() > tree_path_bytes_max || entry.target.find('\0') != std::string::npos) return false;
    if (!device && (entry.major != 0 || entry.minor != 0)) return false;
    return entry.kind == TreeEntryKind::hard_link || entry.link == 0;
}

bool links_to_earlier(const Tree& tree, std::size_t i) {
    const std::uint64_t link = tree.entries[i].link;
    return link < i && tree.entries[link].kind != TreeEntryKind::directory && tree.entries[link].kind != TreeEntryKind::hard_link;
}

// The directory that a path lies in is an entry, and one before it: never a link, nor anything that comes from elsewhere.
bool lies_in_directory(const Tree& tree, std::size_t i) {
    const std::string& path = tree.entries[i].path;
    const std::size_t slash = path.rfind('/');
    const std::string_view above = slash == std::string::npos ? std::string_view() : std::string_view(path).substr(0, slash);
    const auto end = tree.entries.begin() + static_cast<std::ptrdiff_t>(i);
    const auto found = std::lower_bound(tree.entries.begin(), end, above, [](const TreeEntry& entry, std::string_view sought) { return entry.path < sought; });
    return found != end && found->path == above && found->kind == TreeEntryKind::directory;
}

Status check_tree(const Tree& tree) {
    if (!valid_region_name(tree.name) || tree.name.find('/') != std::string::npos) return refuse("a tree whose name is not a valid one");
    if (tree.entries.empty() || !tree.entries[0].path.empty() || tree.entries[0].kind != TreeEntryKind::directory)
        return refuse("tree ", tree.name, ": its first entry is not its own directory");
    for (std::size_t i = 0; i < tree.entries.size(); ++i) {
        const TreeEntry& entry = tree.entries[i];
        const auto wrong = [&](const char* what) { return refuse("tree ", tree.name, ": entry ", i, ": ", what); };
        if (entry.kind > TreeEntryKind::block_device) return Status(Code::unsupported, "tree " + tree.name + ": an entry of a kind that this Cairn does not know");
        if (i > 0 && !path_valid(entry.path)) return wrong("its path leads out of the tree, or nowhere");
        if (i > 0 && tree.entries[i - 1].path >= entry.path) return wrong("its path is not behind the one before");
        if (i > 0 && !lies_in_directory(tree, i)) return wrong("it lies in no directory of the tree");
        if (entry.mode > 07777 || entry.modified.nanoseconds >= 1'000'000'000 || entry.accessed.nanoseconds >= 1'000'000'000) return wrong("an impossible mode or time");
        if (!fits_kind(entry)) return wrong("it has what an entry of its kind can not have");
        if (!holes_valid(entry)) return wrong("its holes do not lie in it one behind the other");
        if (!attributes_valid(entry.attributes)) return wrong("impossible extended attributes");
        if (entry.kind == TreeEntryKind::hard_link && !links_to_earlier(tree, i)) return wrong("it is another name of what can not have one");
    }
    return {};
}

std::string text_of(Reader& reader, const flatbuffers::Vector<std::uint8_t>* bytes) {
    const std::vector<std::uint8_t> values = reader.numbers(bytes);
    return {values.begin(), values.end()};
}

TreeTime time_of(const fb::TreeTime* time) { return time ? TreeTime{time->seconds(), time->nanoseconds()} : TreeTime{}; }

TreeEntry entry_of(Reader& reader, const fb::TreeEntry& from) {
    TreeEntry entry;
    entry.path = text_of(reader, from.path());
    entry.kind = static_cast<TreeEntryKind>(from.kind());
    entry.mode = from.mode();
    entry.uid = from.uid();
    entry.gid = from.gid();
    entry.modified = time_of(from.modified());
    entry.accessed = time_of(from.accessed());
    entry.bytes = from.bytes();
    entry.region = reader.string(from.region());
    for (const fb::TreeHole& hole : reader.structs(from.holes())) entry.holes.push_back({hole.offset(), hole.length()});
    entry.target = text_of(reader, from.target());
    entry.link = from.link();
    entry.major = from.major();
    entry.minor = from.minor();
    entry.attributes = reader.tables(from.attributes(), [&](const fb::TreeAttribute& a) { return TreeAttribute{text_of(reader, a.name()), text_of(reader, a.value())}; });
    return entry;
}

// None where there is nothing.
flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> put_text(Writer& writer, const std::string& text) {
    if (text.empty()) return 0;
    return writer.builder.CreateVector(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

auto put_entry(Writer& writer, const TreeEntry& entry) {
    const auto path = put_text(writer, entry.path), target = put_text(writer, entry.target);
    const auto region = entry.region.empty() ? 0 : writer.string(entry.region);
    std::vector<fb::TreeHole> of_holes;
    for (const TreeHole& hole : entry.holes) of_holes.emplace_back(hole.offset, hole.length);
    const auto holes = of_holes.empty() ? 0 : writer.builder.CreateVectorOfStructs(of_holes);
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::TreeAttribute>>> attributes = 0;
    if (!entry.attributes.empty())
        attributes = writer.tables(entry.attributes, [&](const TreeAttribute& a) {
            const auto name = put_text(writer, a.name), value = put_text(writer, a.value);
            return fb::CreateTreeAttribute(writer.builder, name, value);
        });
    const fb::TreeTime modified(entry.modified.seconds, entry.modified.nanoseconds), accessed(entry.accessed.seconds, entry.accessed.nanoseconds);
    return fb::CreateTreeEntry(writer.builder, path, static_cast<std::uint8_t>(entry.kind), static_cast<std::uint16_t>(entry.mode), entry.uid, entry.gid, &modified, &accessed,
                               entry.bytes, region, holes, target, entry.link, entry.major, entry.minor, attributes);
}

}  // namespace

std::string tree_region_name(const Tree& tree, const TreeEntry& file) { return file.region.empty() ? tree.name + "/" + file.path : file.region; }

Status check_trees(const std::vector<Tree>& trees) {
    for (std::size_t i = 0; i < trees.size(); ++i) {
        TRY(check_tree(trees[i]));
        if (i > 0 && trees[i - 1].name >= trees[i].name) return refuse("tree ", trees[i].name, " is not behind the one before");
    }
    return {};
}

Bytes encode_tree_index(const std::vector<Tree>& trees) {
    Writer writer;
    const auto all = writer.tables(trees, [&](const Tree& tree) {
        const auto entries = writer.tables(tree.entries, [&](const TreeEntry& entry) { return put_entry(writer, entry); });
        const auto name = writer.string(tree.name);
        return fb::CreateTree(writer.builder, name, entries);
    });
    fb::FinishTreeIndexBuffer(writer.builder, fb::CreateTreeIndex(writer.builder, all));
    return frame(FrameKind::trees, writer.bytes());
}

Result<std::vector<Tree>> decode_tree_index(ByteView bytes) {
    Bytes body;
    TRY_ASSIGN(body, unframe(FrameKind::trees, bytes));
    const auto* root = verified_root<fb::TreeIndex>(body, fb::TreeIndexIdentifier());
    if (!root) return corrupt("tree index: its checksum holds but its structure does not");
    Reader reader(body.size());
    std::vector<Tree> trees = reader.tables(root->trees(), [&](const fb::Tree& tree) {
        Tree value{reader.string(tree.name()), {}};
        value.entries = reader.tables(tree.entries(), [&](const fb::TreeEntry& entry) { return entry_of(reader, entry); });
        return value;
    });
    if (reader.exhausted()) return corrupt("tree index: it unpacks to more than it holds");
    TRY(check_trees(trees).within("tree index"));
    return trees;
}

}  // namespace cairn
