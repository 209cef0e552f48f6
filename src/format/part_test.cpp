// Parts: footers and trailers come back, and every way a part can be damaged is told.
#include "format/part.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "format/fields.hpp"
#include "format/frame.hpp"
#include "format/random_samples.hpp"
#include "part_generated.h"

namespace cairn {
namespace {

// As a reader does it: the trailer from the end, then the footer.
Result<Footer> read_tail(ByteView tail, std::uint64_t data_bytes) {
    FooterPlace place;
    TRY_ASSIGN(place, decode_trailer(tail, data_bytes + tail.size()));
    return decode_footer(tail.subspan(place.offset - data_bytes, place.length), place);
}

Result<Footer> round_trip(const Footer& footer) { return read_tail(encode_footer(footer), footer.data_bytes); }

TEST(Part, FootersComeBack) {
    samples::Random random(1);
    for (int i = 0; i < 500; ++i) {
        const Footer footer = random.footer();
        const auto back = round_trip(footer);
        ASSERT_TRUE(back.ok()) << i << ": " << back.status().to_string();
        ASSERT_EQ(*back, footer) << i;
    }
}

TEST(Part, FooterWithoutRuns) {
    Footer footer = samples::footer();
    footer.runs.clear();
    footer.data_bytes = 0;
    footer.images = {samples::image(2)};
    const auto back = round_trip(footer);
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_EQ(*back, footer);
}

// Another format's head, then data without a gap: such a part is told by a footer beside it.
TEST(Part, PrefixAndDataWithoutGaps) {
    Footer footer = samples::footer();
    footer.prefix_bytes = 123;
    footer.prefix_checksum = 7;
    std::uint64_t end = footer.prefix_bytes;
    for (StoredRun& run : footer.runs) {
        run.part_offset = end;
        end += run.stored_bytes;
    }
    footer.data_bytes = end;
    ASSERT_NE(end % part_alignment, 0u);
    const Bytes index = encode_footer(footer, IndexPlace::beside);
    const auto back = read_tail(index, 0);
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_EQ(*back, footer);
    EXPECT_EQ(round_trip(footer).code(), Code::corrupt) << "in the part itself it starts on a multiple of 4096";
    footer.data_bytes = round_up(end, part_alignment);
    EXPECT_EQ(*round_trip(footer), footer);
    footer.runs[1].part_offset += 1;
    EXPECT_NE(check_footer(footer).text().find("starts neither"), std::string::npos);
}

TEST(Part, RunsThatNeedAnOlderVersion) {
    samples::Random random(5);
    for (int i = 0; i < 100; ++i) {
        Footer footer = random.footer();
        footer.key.version = 2 + random.below(9);
        footer.bases = {{{1, {5, 5}}, 3, 8192}, {{footer.key.version - 1, {6, 5}}, 0, 0}};
        for (StoredRun& run : footer.runs) run.base = run.codec == 0 ? 0 : random.below32(3);
        const auto back = round_trip(footer);
        ASSERT_TRUE(back.ok()) << back.status().to_string();
        EXPECT_EQ(*back, footer);
    }
}

TEST(Part, FooterAtAnyAddress) {
    const Footer footer = samples::footer();
    const Bytes tail = encode_footer(footer);
    for (std::size_t shift = 0; shift < 8; ++shift) {
        Bytes shifted(shift);
        shifted.insert(shifted.end(), tail.begin(), tail.end());
        const auto back = read_tail(ByteView(shifted).subspan(shift), footer.data_bytes);
        ASSERT_TRUE(back.ok()) << shift;
        EXPECT_EQ(*back, footer);
    }
}

TEST(Part, ManifestAndTrailerCarryTheSameChecksum) {
    const Bytes tail = encode_footer(samples::footer());
    const auto place = decode_trailer(tail, samples::footer().data_bytes + tail.size());
    ASSERT_TRUE(place.ok());
    EXPECT_EQ(footer_checksum(tail), place->checksum);
    EXPECT_EQ(place->checksum, checksum(ByteView(tail).first(place->length)));
    EXPECT_EQ(place->offset, samples::footer().data_bytes);
}

TEST(Part, CutAtEveryLength) {
    const Bytes part = samples::part();
    for (std::size_t length = 0; length < part.size(); ++length)
        ASSERT_EQ(decode_trailer(ByteView(part).first(length), length).code(), Code::corrupt) << length;
}

TEST(Part, EveryBitOfTheTailFlipped) {
    const std::uint64_t data_bytes = samples::footer().data_bytes;
    Bytes tail = encode_footer(samples::footer());
    for (std::size_t bit = 0; bit < 8 * tail.size(); ++bit) {
        tail[bit / 8] ^= std::byte(1 << bit % 8);
        ASSERT_EQ(read_tail(tail, data_bytes).code(), Code::corrupt) << "bit " << bit;
        tail[bit / 8] ^= std::byte(1 << bit % 8);
    }
}

TEST(Part, SomethingBehind) {
    Bytes part = samples::part();
    part.push_back(std::byte(0));
    EXPECT_EQ(decode_trailer(part, part.size()).code(), Code::corrupt);
}

TEST(Part, SizeThatIsNotTheTrailers) {
    const Bytes part = samples::part();
    for (const std::uint64_t size : {part.size() + 1, part.size() - 1, std::size_t{0}, std::size_t{47}, SIZE_MAX})
        EXPECT_EQ(decode_trailer(part, size).code(), Code::corrupt) << size;
    EXPECT_TRUE(decode_trailer(part, part.size()).ok());
}

TEST(Part, Foreign) {
    const Bytes text = to_bytes(std::string(5000, 'x'));
    const auto place = decode_trailer(text, text.size());
    EXPECT_EQ(place.code(), Code::corrupt);
    EXPECT_NE(place.status().text().find("not one of Cairn's"), std::string::npos);
}

// Changes a field of the trailer and mends the trailer's checksum.
Result<FooterPlace> with_trailer(const std::function<void(std::byte* trailer)>& change) {
    Bytes part = samples::part();
    std::byte* trailer = part.data() + part.size() - part_trailer_bytes;
    change(trailer);
    put_u64(trailer + 32, checksum(ByteView(trailer, 32)));
    return decode_trailer(part, part.size());
}

TEST(Part, NewerVersion) {
    const auto place = with_trailer([](std::byte* trailer) { put_u32(trailer + 24, format_version + 1); });
    ASSERT_EQ(place.code(), Code::unsupported);
    EXPECT_NE(place.status().text().find("version 3 found, this Cairn knows up to 2"), std::string::npos)
        << place.status().text();
}

TEST(Part, ImpossibleTrailers) {
    EXPECT_TRUE(with_trailer([](std::byte*) {}).ok());
    EXPECT_EQ(with_trailer([](std::byte* t) { put_u32(t + 24, 0); }).code(), Code::corrupt) << "version 0";
    EXPECT_EQ(with_trailer([](std::byte* t) { put_u32(t + 28, 1); }).code(), Code::corrupt) << "the field that is zero";
    const std::uint64_t offset = samples::footer().data_bytes;
    for (const std::uint64_t wrong :
         {std::uint64_t{0}, offset - 1, offset + 1, offset + 4096, UINT64_MAX, UINT64_MAX - 47})
        EXPECT_EQ(with_trailer([&](std::byte* t) { put_u64(t, wrong); }).code(), Code::corrupt) << "offset " << wrong;
    for (const std::uint64_t wrong :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 31, UINT64_MAX, UINT64_MAX - offset})
        EXPECT_EQ(with_trailer([&](std::byte* t) { put_u64(t + 8, wrong); }).code(), Code::corrupt)
            << "length " << wrong;
    // Offset and length that agree with each other by overflow.
    EXPECT_EQ(with_trailer([&](std::byte* t) {
                  put_u64(t, UINT64_MAX - 99);
                  put_u64(t + 8, samples::part().size() - 48 + 100);
              }).code(),
              Code::corrupt);
}

// ---- invariants: each violated once, and told in words that name it ----

struct Violation {
    const char* called;
    std::function<void(Footer&)> make;
    const char* told;
};

const Violation violations[] = {
    {"name", [](Footer& f) { f.key.name = "../x"; }, "name is not a valid one"},
    {"version", [](Footer& f) { f.key.version = 0; }, "version 0"},
    {"incarnation", [](Footer& f) { f.key.incarnation = {}; }, "no incarnation"},
    {"attempt", [](Footer& f) { f.attempt_id = {}; }, "no attempt"},
    {"no ranks", [](Footer& f) { f.ranks = 0; }, "0 ranks"},
    {"too many ranks", [](Footer& f) { f.ranks = ranks_max + 1; }, "16777217 ranks"},
    {"no parts", [](Footer& f) { f.parts = 0; }, "part 0 of 0"},
    {"part beyond parts", [](Footer& f) { f.part = 1; }, "part 1 of 1"},
    {"more parts than ranks", [](Footer& f) { f.parts = 4; }, "part 0 of 4 for 3 ranks"},
    {"block size no power of two", [](Footer& f) { f.block_bytes = 4096 * 3; }, "block size of 12288"},
    {"block size small", [](Footer& f) { f.block_bytes = 2048; }, "block size of 2048"},
    {"block size large", [](Footer& f) { f.block_bytes = 1ull << 31; }, "block size of 2147483648"},
    {"block size zero", [](Footer& f) { f.block_bytes = 0; }, "block size of 0"},
    {"data not aligned", [](Footer& f) { f.data_bytes += 1; }, "no multiple of 4096"},
    {"data beyond all bounds", [](Footer& f) { f.data_bytes = 1ull << 62; }, "are too many"},
    {"codec without a name", [](Footer& f) { f.codecs = {{"", ""}}; }, "impossible name"},
    {"codec beyond the table", [](Footer& f) { f.runs[0].codec = 1; }, "codec 1 of 0"},
    {"base of the same version", [](Footer& f) { f.bases = {{{f.key.version, {5, 5}}, 0, 0}}; }, "can not be a base"},
    {"base of no incarnation", [](Footer& f) { f.bases = {{{1, {}}, 0, 0}}; }, "can not be a base"},
    {"base beyond the table", [](Footer& f) { f.runs[0].base = 1; }, "has base 1 of 0"},
    {"base of what is stored as it is", [](Footer& f) { f.bases = {{{1, {5, 5}}, 0, 0}}, f.runs[0].base = 1; }, "stored as it is, and yet has a base"},
    {"prefix that runs overlap", [](Footer& f) { f.prefix_bytes = 1; }, "overlaps or precedes what is before it"},
    {"prefix without length", [](Footer& f) { f.prefix_checksum = 1; }, "no prefix, and yet it has a checksum"},
    {"prefix beyond all bounds", [](Footer& f) { f.prefix_bytes = prefix_bytes_max + 1; }, "a prefix of"},
    {"prefix beyond the data", [](Footer& f) { f.runs.clear(), f.prefix_bytes = f.data_bytes + 1; }, "its prefix is"},
    {"too many codecs", [](Footer& f) { f.codecs.assign(codecs_max + 1, {"zero-runs", ""}); }, "1025 codecs"},
    {"image of a rank beyond", [](Footer& f) { f.images[2].rank = 3; }, "rank 3 of 3"},
    {"image twice", [](Footer& f) { f.images[2].rank = 0; }, "rank 0 is there twice"},
    {"image beyond all bounds", [](Footer& f) { f.images[2].bytes = (1ull << 60) + 1; }, "rank 2: an image of"},
    {"region name", [](Footer& f) { f.images[0].regions[0].name = "a/../../b"; },
     "rank 0: a region with an impossible name"},
    {"region named twice", [](Footer& f) { f.images[0].regions[1].name = "x"; }, "rank 0: two regions are named 'x'"},
    {"region kind", [](Footer& f) { f.images[0].regions[0].kind = RegionKind(3); }, "region 'x' is of unknown kind 3"},
    {"region type", [](Footer& f) { f.images[0].regions[0].type = DataType(15); }, "region 'x' is of unknown type 15"},
    {"region beyond image", [](Footer& f) { f.images[0].regions[2].offset += 1; }, "lies outside its image"},
    {"region offset overflows", [](Footer& f) { f.images[0].regions[2].offset = UINT64_MAX; },
     "lies outside its image"},
    {"region longer than image", [](Footer& f) { f.images[0].regions[0].length = UINT64_MAX; },
     "lies outside its image"},
    {"shape against length",
     [](Footer& f) {
         f.images[0].regions[0].shape = {5, 99};
     },
     "do not make its 4000 bytes"},
    {"shape overflows",
     [](Footer& f) {
         f.images[0].regions[0].shape = {1ull << 32, 1ull << 32};
     },
     "do not make"},
    {"shape and type overflow", [](Footer& f) { f.images[0].regions[0].shape = {(1ull << 61) + 500}; }, "do not make"},
    {"shape overflows beside a zero",
     [](Footer& f) {
         f.images[2].regions = {{"z", RegionKind::memory, DataType::u8, {1ull << 63, 4, 0}, 0, 0}};
     },
     "do not make its 0 bytes"},
    {"block of other dimensions", [](Footer& f) { f.images[0].regions[0].global_shape = {40}; }, "the array that it is a block of has others"},
    {"block beyond its array",
     [](Footer& f) {
         f.images[0].regions[0].global_shape = {10, 100};
         f.images[0].regions[0].global_offset = {6, 0};
     },
     "is a block of 5 at 6 of 10 in dimension 0"},
    {"array that overflows",
     [](Footer& f) {
         f.images[0].regions[0].global_shape = {1ull << 62, 1ull << 62};
         f.images[0].regions[0].global_offset = {0, 0};
     },
     "larger than any can be"},
    {"file as a block",
     [](Footer& f) {
         f.images[1].regions[0].global_shape = {80};
         f.images[1].regions[0].global_offset = {0};
     },
     "and yet a block of an array"},
    {"too many dimensions", [](Footer& f) { f.images[0].regions[1].shape.assign(33, 1); }, "33 dimensions"},
    {"file of numbers", [](Footer& f) { f.images[1].regions[0].type = DataType::i8; }, "no memory"},
    {"file of two dimensions",
     [](Footer& f) {
         f.images[1].regions[0].shape = {4, 10};
     },
     "no memory"},
    {"piece of no image", [](Footer& f) { f.images.erase(f.images.begin() + 1); }, "rank 1 at 0 of its image: nothing is said"},
    {"run that is not aligned", [](Footer& f) { f.runs[1].part_offset += 512; }, "starts neither on a multiple of 4096 nor where"},
    {"run of nothing", [](Footer& f) { f.runs[0].pieces.clear(); }, "holds nothing of any image"},
    {"run of no bytes", [](Footer& f) { f.runs[0].stored_bytes = 0; }, "with 0 bytes reaches beyond"},
    {"cuts out of order", [](Footer& f) { f.runs[1].pieces[0].cuts = {10, 10}; }, "can not be cut so"},
    {"cut at the end of a piece", [](Footer& f) { f.runs[1].pieces[0].cuts = {5000}; }, "can not be cut so"},
    {"piece of nothing",
     [](Footer& f) {
         f.runs[0].pieces[0].length = 0;
         f.runs[0].pieces[0].checksums.clear();
     },
     "lies outside its image"},
    {"piece beyond its image", [](Footer& f) { f.runs[0].pieces[0].length = 41; }, "lies outside its image of 40"},
    {"piece offset overflows", [](Footer& f) { f.runs[0].pieces[0].image_offset = UINT64_MAX - 4095; }, "lies outside its image"},
    {"a checksum too few for a cut", [](Footer& f) { f.runs[1].pieces[0].cuts = {10}; }, "has 2 checksums for 3 units"},
    {"piece behind a gap in its run", [](Footer& f) { f.runs[0].pieces[0].at = 1; }, "of which only 0 bytes come before"},
    {"pieces out of order",
     [](Footer& f) {
         f = samples::packed_footer();
         std::swap(f.runs[0].pieces[0].at, f.runs[0].pieces[1].at);
         std::swap(f.runs[0].pieces[0], f.runs[0].pieces[1]);
         f.runs[0].pieces[0].at = 0;
         f.runs[0].pieces[1].at = 904;
         f.runs[0].pieces.push_back({2, 0, 1, 0, {1}});
         f.images[2].bytes = 1;
     },
     "is out of order"},
    {"encoded and not shorter",
     [](Footer& f) {
         f = samples::packed_footer();
         f.runs[1].stored_bytes = 4096;
     },
     "encodes 4096 bytes as 4096, which is not shorter"},
    {"run of more than its pieces", [](Footer& f) { f.runs[0].stored_bytes = 41; }, "stores 41 bytes as they are, and its pieces are 40"},
    {"raw run with a checksum", [](Footer& f) { f.runs[0].checksum = 1; }, "has a checksum of its own"},
    {"run beyond the data", [](Footer& f) { f.data_bytes -= 8192; }, "reaches beyond the part's 4096"},
    {"run far beyond the data", [](Footer& f) { f.runs[1].part_offset = 0 - 4096ull; }, "reaches beyond"},
    {"a checksum too few", [](Footer& f) { f.runs[1].pieces[0].checksums.pop_back(); }, "has 1 checksums for 2 units"},
    {"runs out of order", [](Footer& f) { std::swap(f.runs[0], f.runs[1]); }, "overlaps or precedes"},
    {"runs overlap in the part", [](Footer& f) { f.runs[1].part_offset = 0; }, "overlaps or precedes"},
    {"pieces overlap in an image",
     [](Footer& f) {
         f.data_bytes += 4096;
         f.runs.push_back({3 * 4096, 904, 0, 0, {{0, 4096, 904, 0, {1}}}});
     },
     "another run holds these bytes, too"},
};

class Invariants : public testing::TestWithParam<Violation> {};
TEST_P(Invariants, Violated) {
    Footer footer = samples::footer();
    ASSERT_TRUE(round_trip(footer).ok());
    GetParam().make(footer);
    EXPECT_EQ(check_footer(footer).code(), Code::corrupt);
    EXPECT_NE(check_footer(footer).text().find(GetParam().told), std::string::npos) << check_footer(footer).text();
    const auto result = round_trip(footer);
    ASSERT_EQ(result.code(), Code::corrupt);
}
INSTANTIATE_TEST_SUITE_P(Part, Invariants, testing::ValuesIn(violations), [](const auto& test) {
    std::string name = test.param.called;
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
});

TEST(Part, FooterThatLiesElsewhere) {
    const Footer footer = samples::footer();
    const Bytes tail = encode_footer(footer);
    const std::uint64_t length = tail.size() - part_trailer_bytes;
    const FooterPlace elsewhere{footer.data_bytes + 4096, length, footer_checksum(tail)};
    EXPECT_EQ(decode_footer(ByteView(tail).first(length), elsewhere).code(), Code::corrupt);
    const FooterPlace shorter{footer.data_bytes, length - 1, footer_checksum(tail)};
    EXPECT_EQ(decode_footer(ByteView(tail).first(length), shorter).code(), Code::corrupt);
}

// ---- structures that no writer makes ----

Result<Footer> decode_body(ByteView body, std::uint64_t data_bytes) {
    return decode_footer(body, {data_bytes, body.size(), checksum(body)});
}

TEST(Part, NonsenseWithRightChecksums) {
    const Footer footer = samples::footer();
    Bytes body = encode_footer(footer);
    body.resize(body.size() - part_trailer_bytes);
    const auto refused_or_comes_back = [&](ByteView bytes) {
        const auto value = decode_body(bytes, footer.data_bytes);
        if (!value.ok()) return value.code() == Code::corrupt;
        const auto again = round_trip(*value);
        return again.ok() && *again == *value;
    };
    for (std::size_t bit = 0; bit < 8 * body.size(); ++bit) {
        body[bit / 8] ^= std::byte(1 << bit % 8);
        ASSERT_TRUE(refused_or_comes_back(body)) << "bit " << bit;
        body[bit / 8] ^= std::byte(1 << bit % 8);
    }
    for (std::size_t length = 0; length < body.size(); ++length)
        ASSERT_TRUE(refused_or_comes_back(ByteView(body).first(length))) << length;
}

// A kilobyte's worth of tables that all point at one large vector would unpack to a thousand times its size.
TEST(Part, OneVectorSharedByManyCovers) {
    Writer writer;
    auto& builder = writer.builder;
    const auto shared = builder.CreateVector(std::vector<std::uint64_t>(1 << 16));
    std::vector<flatbuffers::Offset<fb::Cover>> covers;
    for (int i = 0; i < 1000; ++i) covers.push_back(fb::CreateCover(builder, 0, 0, 1, shared));
    const fb::Id attempt(1, 2);
    const auto key = writer.key(samples::key);
    const auto all = builder.CreateVector(covers);
    fb::FinishFooterBuffer(builder, fb::CreateFooter(builder, key, 1, &attempt, 0, 1, 1, 4096, 4096, 0, 0, 0, all));
    const auto result = decode_body(writer.bytes(), 4096);
    ASSERT_EQ(result.code(), Code::corrupt);
    EXPECT_NE(result.status().text().find("unpacks to more than it holds"), std::string::npos)
        << result.status().text();
}

// Many pieces that all take their checksums from one cover would do the same.
TEST(Part, OneCoverOfManyPieces) {
    Writer writer;
    auto& builder = writer.builder;
    const auto cover = fb::CreateCover(builder, 0, 0, 4096ull << 16, builder.CreateVector(std::vector<std::uint64_t>(1 << 16)));
    const auto covers = builder.CreateVector(&cover, 1);
    const auto pieces = builder.CreateVectorOfStructs(std::vector<fb::Piece>(10'000, {0, 0, 4096ull << 16, 0}));
    const auto run = fb::CreateStoredRun(builder, 0, 4096ull << 16, 0, 0, pieces);
    const auto runs = builder.CreateVector(&run, 1);
    const fb::Id attempt(1, 2);
    const auto key = writer.key(samples::key);
    fb::FinishFooterBuffer(builder, fb::CreateFooter(builder, key, 1, &attempt, 0, 1, 1, 4096, 4096ull << 16, 0, 0, 0, covers, runs));
    const auto result = decode_body(writer.bytes(), 4096ull << 16);
    ASSERT_EQ(result.code(), Code::corrupt);
    EXPECT_NE(result.status().text().find("another run holds these bytes, too"), std::string::npos) << result.status().text();
}

// The same with tables: each level of sharing is counted by the verifier.
TEST(Part, OneImageSharedManyTimes) {
    Writer writer;
    auto& builder = writer.builder;
    const auto region = writer.region({"x", RegionKind::memory, DataType::u8, {}, 0, 1});
    const auto image = fb::CreateImage(builder, 0, 1, builder.CreateVector(std::vector(2000, region)));
    const auto images = builder.CreateVector(std::vector(2000, image));
    const fb::Id attempt(1, 2);
    const auto key = writer.key(samples::key);
    fb::FinishFooterBuffer(builder, fb::CreateFooter(builder, key, 1, &attempt, 0, 1, 1, 4096, 4096, images));
    EXPECT_EQ(decode_body(writer.bytes(), 4096).code(), Code::corrupt);
}

TEST(Part, MoreThanOneFooterHolds) {
    EXPECT_TRUE(check_part_size({part_units_max, 0, 1000}, {samples::image(0)}).ok());
    const Status blocks = check_part_size({part_units_max + 1, 0, 1}, {});
    EXPECT_EQ(blocks.code(), Code::invalid_argument);
    EXPECT_NE(blocks.text().find("use larger blocks or more parts"), std::string::npos) << blocks.text();
    const Status pieces = check_part_size({part_units_max, 0, 1ull << 24}, {});
    EXPECT_NE(pieces.text().find("use more parts"), std::string::npos) << pieces.text();
}

}  // namespace
}  // namespace cairn
