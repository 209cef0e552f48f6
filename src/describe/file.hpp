// Files that describe themselves: which formats Cairn knows, and where their variables lie. Pure: from a file's bytes to extents. Bytes are believed in nothing: a damaged or
// hostile file is an error, or all skeleton, and costs no more time and memory than the limits here allow.
//
// A new format is a row in file.cpp and a file of its own. Formats that take a library to read are not here (ARCHITECTURE.md, "HDF5 is read by a child").
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "describe/extent.hpp"
#include "describe/rules.hpp"

namespace cairn {

// Of one file, in extents; further ones are skeleton. With their names they take some 10 MB.
inline constexpr std::size_t extents_max = 65'536;

// unsupported: no format that is known here; corrupt: one that is, and what is wrong with it.
Result<Description> describe_file(ByteView file);

// What another process says of a file whose format takes a library to read (hdf5_signature.hpp): `length` bytes of the file at `path`, from `offset` on. Of several threads at once; it may take its time.
using DescribeElsewhere = std::function<Result<Description>(const std::string& path, std::uint64_t offset, std::uint64_t length)>;

// What describes files beside describe_file().
struct Describers {
    DescribeElsewhere elsewhere;             // null: files that take a library to describe are not described
    std::shared_ptr<const FileRules> rules;  // the user's, which go before what formats say; null: there are none
    NameRule names = NameRule::groups;       // which arrays are alike; of regions, too
};
inline constexpr std::string_view call_format = "call";  // of a Description of what the application said

// A file as all of these see it: what the application said of it, which goes before all else; the rules by its name; and where it lies on disk for who is asked elsewhere.
struct FileToDescribe {
    std::string name;
    ByteView bytes;
    std::string path;  // these bytes lie there, from `offset` on
    std::uint64_t offset = 0;
    std::span<const DescribedArray> described = {};
};
Result<Description> describe_file(const FileToDescribe& file, const Describers& describers);

// What a format says, as far as it can be believed: by offset, within the file, none over another, none empty, at most extents_max.
std::vector<Extent> sound(std::vector<Extent> extents, std::uint64_t file_bytes);

// As many bytes as numbers of this type in this shape take; nothing where that is no number of bytes.
std::optional<std::uint64_t> bytes_of(DataType type, const std::vector<std::uint64_t>& shape);

}  // namespace cairn
