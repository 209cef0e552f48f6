#include "describer/talk.hpp"

#include <gtest/gtest.h>

#include "describe/file.hpp"

namespace cairn::describer {
namespace {

std::vector<Extent> two_extents() {
    return {{"a/x", DataType::f64, false, {2, 3}, 100, 48}, {"", DataType::i16, true, {}, 1, 2}};
}

TEST(DescriberTalk, ComesThroughAsItWasSaid) {
    const Bytes asked = request_bytes({"/scratch/image", 4096, 1 << 20, 250});
    EXPECT_EQ(request_head(ByteView(asked).first(head_bytes)).value().bytes, asked.size() - head_bytes);
    const Request request = read_request(ByteView(asked).subspan(head_bytes)).value();
    EXPECT_EQ(request.path, "/scratch/image");
    EXPECT_EQ(request.offset, 4096u);
    EXPECT_EQ(request.length, 1u << 20);
    EXPECT_EQ(request.limit_ms, 250u);

    const Bytes said = answer_bytes(two_extents());
    EXPECT_EQ(answer_head(ByteView(said).first(head_bytes)).value().code, 0u);
    EXPECT_EQ(read_extents(ByteView(said).subspan(head_bytes)).value(), two_extents());
    EXPECT_TRUE(read_extents({}).value().empty());

    const Bytes failed = answer_bytes(corrupt("why"));
    EXPECT_EQ(answer_head(ByteView(failed).first(head_bytes)).value().code, static_cast<std::uint32_t>(Code::corrupt));
    EXPECT_EQ(as_text(ByteView(failed).subspan(head_bytes)), "why");
}

TEST(DescriberTalk, NonsenseIsAnError) {
    Bytes said = answer_bytes(two_extents());
    EXPECT_FALSE(answer_head(ByteView(request_bytes({"x", 0, 1, 1})).first(head_bytes)).ok()) << "an echo";
    EXPECT_FALSE(answer_head(ByteView(said).first(head_bytes - 1)).ok());
    EXPECT_FALSE(request_head(ByteView(said).first(head_bytes)).ok());
    Bytes head(said.begin(), said.begin() + head_bytes);
    const std::uint64_t long_body = answer_bytes_max + 1;
    std::memcpy(head.data() + 8, &long_body, 8);
    EXPECT_FALSE(answer_head(head).ok());
    head.assign(said.begin(), said.begin() + head_bytes);
    head[4] = std::byte{200};
    EXPECT_FALSE(answer_head(head).ok()) << "a code that there is not";
    EXPECT_FALSE(read_request(ByteView(said).first(23)).ok());
}

TEST(DescriberTalk, AnExtentThatMakesNoSenseIsAnErrorWhereverItIsCutOrChanged) {
    const Bytes said = answer_bytes(two_extents());
    const ByteView body = ByteView(said).subspan(head_bytes);
    const std::size_t first = 21 + 2 * 8 + 3;  // bytes of the first extent
    for (std::size_t length = 1; length < body.size(); ++length) EXPECT_EQ(read_extents(body.first(length)).ok(), length == first) << length;
    for (const std::size_t at : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{13}, std::size_t{21}}) {  // type, byte order, what its axes are, how many, length, shape
        Bytes changed(body.begin(), body.end());
        changed[at] = std::byte{77};
        EXPECT_FALSE(read_extents(changed).ok()) << at;
    }
}

TEST(DescriberTalk, WhatIsTooLongIsCut) {
    std::vector<Extent> many(2, {std::string(1000, 'n'), DataType::u8, false, {5}, 0, 5});
    EXPECT_EQ(read_extents(ByteView(answer_bytes(many)).subspan(head_bytes)).value().at(1).name, std::string(255, 'n'));
    many.assign(200'000, {std::string(255, 'n'), DataType::u8, false, std::vector<std::uint64_t>(20, 1), 0, 1});
    const Bytes said = answer_bytes(many);
    EXPECT_TRUE(answer_head(ByteView(said).first(head_bytes)).ok());
    EXPECT_FALSE(read_extents(ByteView(said).subspan(head_bytes)).ok()) << "more than there may be";
    many.resize(extents_max);
    EXPECT_EQ(read_extents(ByteView(answer_bytes(many)).subspan(head_bytes)).value().size(), extents_max);
}

}  // namespace
}  // namespace cairn::describer
