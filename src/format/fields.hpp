// Between FlatBuffers and model values. For the .cpp files of format/ alone: brings the FlatBuffers headers.
//
// A hostile buffer can let many tables point at one vector, and so unpack to far more than its own size. Reader
// therefore has a budget: all strings and vectors together are at most as long as the buffer, and so are all tables
// (the verifier's limit), as in every buffer in which nothing is shared. Memory is thus a small multiple of what came
// in.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "common_generated.h"
#include "format/check.hpp"
#include "format/covers.hpp"
#include "format/limits.hpp"
#include "model/types.hpp"

namespace cairn {

// Verified root of a body, or null.
template <class Table>
const Table* verified_root(ByteView body, const char* identifier) {
    if (body.size() > record_bytes_max) return nullptr;
    flatbuffers::Verifier::Options options;
    options.max_depth = 16;
    options.max_tables = static_cast<flatbuffers::uoffset_t>(body.size() / 8 + 1);
    const auto* data = reinterpret_cast<const std::uint8_t*>(body.data());
    flatbuffers::Verifier verifier(data, body.size(), options);
    return verifier.VerifyBuffer<Table>(identifier) ? flatbuffers::GetRoot<Table>(data) : nullptr;
}

// Reads from verified tables. `exhausted()` after the last read says whether the budget held; what was read then is not
// to be used.
class Reader {
  public:
    explicit Reader(std::uint64_t body_bytes) : left_(body_bytes) {}
    bool exhausted() const noexcept { return exhausted_; }

    std::string string(const flatbuffers::String* text) {
        if (!text || !take(text->size())) return {};
        return text->str();
    }
    std::vector<std::string> strings(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* from) {
        if (!from || !take(std::uint64_t{from->size()} * sizeof(flatbuffers::uoffset_t))) return {};
        std::vector<std::string> values;
        values.reserve(from->size());
        for (flatbuffers::uoffset_t i = 0; i < from->size() && !exhausted_; ++i) values.push_back(string(from->Get(i)));
        return values;
    }
    // Of numbers or structs. Copied bytewise: the verifier looks at the alignment of a vector's length only.
    template <class Element>
    std::vector<Element> numbers(const flatbuffers::Vector<Element>* from) {
        if (!from || !take(std::uint64_t{from->size()} * sizeof(Element))) return {};
        std::vector<Element> values(from->size());
        if (!values.empty()) std::memcpy(values.data(), from->Data(), values.size() * sizeof(Element));
        if constexpr (!FLATBUFFERS_LITTLEENDIAN)
            for (Element& value : values) value = flatbuffers::EndianScalar(value);
        return values;
    }
    template <class Struct>
    std::vector<Struct> structs(const flatbuffers::Vector<const Struct*>* from) {
        if (!from || !take(std::uint64_t{from->size()} * sizeof(Struct))) return {};
        std::vector<Struct> values(from->size());
        if (!values.empty())
            std::memcpy(static_cast<void*>(values.data()), from->Data(), values.size() * sizeof(Struct));
        return values;
    }
    // Applies `read` to each table of a vector.
    template <class Table, class Read>
    auto tables(const flatbuffers::Vector<flatbuffers::Offset<Table>>* from, Read read) {
        std::vector<decltype(read(*from->Get(0)))> values;
        if (!from || !take(std::uint64_t{from->size()} * sizeof(flatbuffers::uoffset_t))) return values;
        values.reserve(from->size());
        for (flatbuffers::uoffset_t i = 0; i < from->size() && !exhausted_; ++i) values.push_back(read(*from->Get(i)));
        return values;
    }

    static Id128 id(const fb::Id& id) { return {id.high(), id.low()}; }
    static Parent parent(const fb::Parent& parent) { return {id(parent.incarnation()), parent.version()}; }
    VersionKey key(const fb::Key& key) { return {string(key.name()), key.version(), id(*key.incarnation())}; }
    Region region(const fb::Region& region) {
        return {string(region.name()),
                static_cast<RegionKind>(region.kind()),
                static_cast<DataType>(region.type()),
                numbers(region.shape()),
                region.offset(),
                region.length(),
                numbers(region.global_shape()),
                numbers(region.global_offset()),
                described(region.described())};
    }
    // Those that can be. What a later release says in another way is no reason to refuse the region.
    std::vector<DescribedArray> described(const flatbuffers::Vector<flatbuffers::Offset<fb::DescribedArray>>* from) {
        std::vector<DescribedArray> values;
        if (!from || !take(std::uint64_t{from->size()} * sizeof(flatbuffers::uoffset_t))) return values;
        for (flatbuffers::uoffset_t i = 0; i < std::min(from->size(), described_arrays_max) && !exhausted_; ++i) {
            const fb::DescribedArray& a = *from->Get(i);
            DescribedArray array{string(a.name()), static_cast<DataType>(a.type()), a.big_endian(), numbers(a.shape()), a.offset()};
            if (check::can_be(array)) values.push_back(std::move(array));
        }
        return values;
    }
    ImageInfo image(const fb::Image& image) {
        const bool beside = image.index_bytes() == 0;
        return {image.rank(), image.bytes(), tables(beside ? image.regions() : nullptr, [this](const fb::Region& r) { return region(r); }), image.cuts(),
                image.index_bytes(), image.naming_bytes()};
    }
    std::vector<ImageInfo> images(const flatbuffers::Vector<flatbuffers::Offset<fb::Image>>* from) {
        return tables(from, [this](const fb::Image& i) { return image(i); });
    }
    CodecName codec(const fb::Codec& c) { return {string(c.name()), string(c.parameters())}; }
    std::vector<Cover> covers(const flatbuffers::Vector<flatbuffers::Offset<fb::Cover>>* from) {
        return tables(from, [this](const fb::Cover& c) { return Cover{c.rank(), c.image_offset(), c.length(), numbers(c.checksums()), numbers(c.cuts())}; });
    }
    // Their pieces are still without checksums.
    std::vector<StoredRun> runs(const flatbuffers::Vector<flatbuffers::Offset<fb::StoredRun>>* from) {
        return tables(from, [this](const fb::StoredRun& r) {
            StoredRun run{r.part_offset(), r.stored_bytes(), r.codec(), r.checksum(), {}, r.base()};
            for (const fb::Piece& piece : structs(r.pieces())) run.pieces.push_back({piece.rank(), piece.image_offset(), piece.length(), piece.at(), {}, {}});
            return run;
        });
    }
    BaseRun base_run(const fb::BaseRun& b) { return {{b.version(), id(*b.incarnation())}, b.part(), b.part_offset()}; }
    // Of version 1: a run of one piece.
    StoredRun extent(const fb::Extent& e) { return {e.part_offset(), e.length(), 0, 0, {{e.rank(), e.image_offset(), e.length(), 0, numbers(e.checksums()), {}}}}; }
    PartInfo part_info(const fb::PartInfo& part) {
        return {string(part.file()), part.bytes(), part.footer_offset(), part.footer_checksum(), numbers(part.ranks()), part.root(), 0, part.index_bytes()};
    }
    std::vector<PartInfo> part_infos(const flatbuffers::Vector<flatbuffers::Offset<fb::PartInfo>>* from) {
        return tables(from, [this](const fb::PartInfo& p) { return part_info(p); });
    }

  private:
    bool take(std::uint64_t bytes) {
        if (bytes > left_) exhausted_ = true;
        if (exhausted_) return false;
        left_ -= bytes;
        return true;
    }

    std::uint64_t left_;
    bool exhausted_ = false;
};

// Writes model values into a builder.
class Writer {
  public:
    explicit Writer(std::size_t initial_bytes = 1024) : builder(initial_bytes) {}
    flatbuffers::FlatBufferBuilder builder;

    template <class T>
    using Offsets = flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<T>>>;

    auto string(std::string_view text) { return builder.CreateString(text.data(), text.size()); }
    // None at all where there are none: a record without them is what it was before it could have them.
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> strings(const std::vector<std::string>& values) {
        if (values.empty()) return 0;
        std::vector<flatbuffers::Offset<flatbuffers::String>> offsets;
        for (const std::string& value : values) offsets.push_back(string(value));
        return builder.CreateVector(offsets);
    }
    template <class Number>
    auto numbers(const std::vector<Number>& values) {
        return builder.CreateVector(values);
    }
    flatbuffers::Offset<flatbuffers::Vector<std::uint64_t>> numbers_or_none(const std::vector<std::uint64_t>& values) {
        if (values.empty()) return 0;
        return numbers(values);
    }
    template <class Value, class Write>
    auto tables(const std::vector<Value>& values, Write write) {
        std::vector<decltype(write(values[0]))> offsets;
        offsets.reserve(values.size());
        for (const Value& value : values) offsets.push_back(write(value));
        return builder.CreateVector(offsets);
    }

    static fb::Id id(Id128 id) { return {id.high, id.low}; }
    static fb::Parent parent(const Parent& parent) { return {id(parent.incarnation), parent.version}; }
    auto key(const VersionKey& key) {
        const fb::Id incarnation = id(key.incarnation);
        return fb::CreateKey(builder, string(key.name), key.version, &incarnation);
    }
    auto region(const Region& r) {
        const auto name = string(r.name);
        const auto shape = numbers(r.shape);
        const auto global_shape = numbers_or_none(r.global_shape), global_offset = numbers_or_none(r.global_offset);
        return fb::CreateRegion(builder, name, static_cast<std::uint8_t>(r.kind), static_cast<std::uint8_t>(r.type), shape, r.offset, r.length, global_shape,
                                global_offset, described(r.described));
    }
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::DescribedArray>>> described(const std::vector<DescribedArray>& arrays) {
        if (arrays.empty()) return 0;
        return tables(arrays, [this](const DescribedArray& a) {
            const auto name = a.name.empty() ? 0 : string(a.name);
            const auto shape = numbers(a.shape);
            return fb::CreateDescribedArray(builder, name, static_cast<std::uint8_t>(a.type), a.is_big_endian, shape, a.offset);
        });
    }
    auto image(const ImageInfo& image) {
        if (image.index_bytes != 0) return fb::CreateImage(builder, image.rank, image.bytes, 0, image.cuts, image.index_bytes, image.naming_bytes);
        const auto regions = tables(image.regions, [this](const Region& r) { return region(r); });
        return fb::CreateImage(builder, image.rank, image.bytes, regions, image.cuts, 0, image.naming_bytes);
    }
    auto images(const std::vector<ImageInfo>& images_) {
        return tables(images_, [this](const ImageInfo& i) { return image(i); });
    }
    auto codecs(const std::vector<CodecName>& codecs_) {
        return tables(codecs_, [this](const CodecName& c) {
            const auto name = string(c.name), parameters = string(c.parameters);
            return fb::CreateCodec(builder, name, parameters);
        });
    }
    auto base_runs(const std::vector<BaseRun>& bases_) {
        return tables(bases_, [this](const BaseRun& b) {
            const fb::Id incarnation = id(b.of.incarnation);
            return fb::CreateBaseRun(builder, &incarnation, b.of.version, b.part, b.part_offset);
        });
    }
    auto covers(const std::vector<Cover>& covers_) {
        return tables(covers_, [this](const Cover& c) {
            const auto checksums = numbers(c.checksums);
            if (c.cuts.empty()) return fb::CreateCover(builder, c.rank, c.image_offset, c.length, checksums);
            const auto cuts = numbers(c.cuts);
            return fb::CreateCover(builder, c.rank, c.image_offset, c.length, checksums, cuts);
        });
    }
    auto runs(const std::vector<StoredRun>& runs_) {
        return tables(runs_, [this](const StoredRun& r) {
            std::vector<fb::Piece> pieces;
            for (const StoredPiece& piece : r.pieces) pieces.emplace_back(piece.rank, piece.image_offset, piece.length, piece.at);
            const auto offset = builder.CreateVectorOfStructs(pieces);
            return fb::CreateStoredRun(builder, r.part_offset, r.stored_bytes, r.codec, r.checksum, offset, r.base);
        });
    }
    auto part_info(const PartInfo& part) {
        const auto file = string(part.file);
        const auto ranks = numbers(part.ranks);
        return fb::CreatePartInfo(builder, file, part.bytes, part.footer_offset, part.footer_checksum, ranks, part.root, part.index_bytes);
    }
    auto part_infos(const std::vector<PartInfo>& parts) {
        return tables(parts, [this](const PartInfo& p) { return part_info(p); });
    }
    ByteView bytes() const {
        return {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()};
    }
};

}  // namespace cairn
