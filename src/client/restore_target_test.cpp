// Where restored bytes go: memory, callbacks and files, in any order of runs; what is not finished leaves nothing.
#include "client/restore_target.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "client/testing.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t bytes_kept = 1000;

Bytes content() {
    Bytes bytes(bytes_kept);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + 3);
    return bytes;
}

Region kept(RegionKind kind) {
    Region region;
    region.name = "field";
    region.kind = kind;
    region.shape = {bytes_kept};
    region.offset = 640;
    region.length = bytes_kept;
    return region;
}

// The second half first.
void give(RestoreTarget& target) {
    const Bytes all = content();
    ASSERT_TRUE(target.take(300, ByteView(all).subspan(300)).ok());
    ASSERT_TRUE(target.take(0, ByteView(all).first(300)).ok());
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename().string());
    return names;
}

TEST(RestoreTarget, MemoryHasItsBytesAtOnce) {
    Bytes memory(bytes_kept);
    RegionTable regions;
    ASSERT_TRUE(regions.add_memory("field", memory.data(), CAIRN_U8, 1, &bytes_kept).ok());
    RestoreTarget target(*regions.find("field"), kept(RegionKind::memory));
    ASSERT_TRUE(target.prepare(MemoryMap::read().value()).ok());
    give(target);
    EXPECT_EQ(memory, content());
    EXPECT_TRUE(target.finish().ok());
}

TEST(RestoreTarget, MemoryThatIsNotMappedIsRefusedBeforeAnyByte) {
    RegionTable regions;
    ASSERT_TRUE(regions.add_memory("field", reinterpret_cast<void*>(4096), CAIRN_U8, 1, &bytes_kept).ok());
    RestoreTarget target(*regions.find("field"), kept(RegionKind::memory));
    const Status refused = target.prepare(MemoryMap::read().value());
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_NE(refused.text().find("region \"field\" is not mapped, writable memory (1000 bytes)"), std::string::npos) << refused.text();
}

struct Reader {
    Bytes bytes;
    int calls = 0;
    static int size(void*, std::uint64_t* bytes) { return *bytes = 0, 0; }
    static int write(void*, void*, std::uint64_t) { return 0; }
    static int read(void* context, const void* data, std::uint64_t bytes) {
        auto* self = static_cast<Reader*>(context);
        ++self->calls;
        self->bytes.resize(bytes);
        std::memcpy(self->bytes.data(), data, bytes);
        return bytes == 0 ? 5 : 0;
    }
};

TEST(RestoreTarget, ACallbackIsCalledOnceAtTheEnd) {
    Reader got;
    RegionTable regions;
    ASSERT_TRUE(regions.add_callbacks("field", &Reader::size, &Reader::write, &Reader::read, &got).ok());
    RestoreTarget target(*regions.find("field"), kept(RegionKind::callback));
    ASSERT_TRUE(target.prepare(MemoryMap::read().value()).ok());
    give(target);
    EXPECT_EQ(got.calls, 0);
    ASSERT_TRUE(target.finish().ok());
    EXPECT_EQ(got.calls, 1);
    EXPECT_EQ(got.bytes, content());
}

TEST(RestoreTarget, ACallbackThatRefusesIsNamed) {
    Reader got;
    RegionTable regions;
    ASSERT_TRUE(regions.add_callbacks("field", &Reader::size, &Reader::write, &Reader::read, &got).ok());
    Region nothing = kept(RegionKind::callback);
    nothing.shape = {0};
    nothing.length = 0;
    RestoreTarget target(*regions.find("field"), nothing);
    ASSERT_TRUE(target.prepare(MemoryMap::read().value()).ok());
    EXPECT_NE(target.finish().text().find("region \"field\": its deserialise callback"), std::string::npos);
}

class FileTarget : public testing::Test {
  protected:
    void SetUp() override {
        path_ = place_.file("output");
        std::ofstream(path_) << "older";
        std::filesystem::permissions(path_, std::filesystem::perms(0640));
        ASSERT_TRUE(regions_.add_file("field", path_.c_str()).ok());
    }
    std::string text() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    TemporaryPlace place_;
    RegionTable regions_;
    std::string path_;
};

TEST_F(FileTarget, TakesTheOldOnesPlaceAtTheEndAndHasItsMode) {
    RestoreTarget target(*regions_.find("field"), kept(RegionKind::file));
    ASSERT_TRUE(target.prepare(MemoryMap::read().value()).ok());
    give(target);
    EXPECT_EQ(text(), "older");
    ASSERT_TRUE(target.finish().ok());
    const Bytes all = content();
    EXPECT_EQ(text(), std::string(as_text(all)));
    EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0640));
    EXPECT_EQ(names_in(place_.path()), std::vector<std::string>{"output"});
}

TEST_F(FileTarget, LeavesNothingWhenTheRestoreFails) {
    {
        RestoreTarget target(*regions_.find("field"), kept(RegionKind::file));
        ASSERT_TRUE(target.prepare(MemoryMap::read().value()).ok());
        give(target);
        EXPECT_EQ(names_in(place_.path()).size(), 2u);
    }
    EXPECT_EQ(text(), "older");
    EXPECT_EQ(names_in(place_.path()), std::vector<std::string>{"output"});
}

// What is taken away leaves no name behind it, and a name that comes back is the new region.
TEST(RegionTable, ANameIsFoundAsLongAsItIsProtected) {
    Bytes one(bytes_kept), two(bytes_kept);
    RegionTable regions;
    ASSERT_TRUE(regions.add_memory("field", one.data(), CAIRN_U8, 1, &bytes_kept).ok());
    ASSERT_TRUE(regions.add_memory("other", one.data(), CAIRN_U8, 1, &bytes_kept).ok());
    EXPECT_EQ(regions.add_memory("field", two.data(), CAIRN_U8, 1, &bytes_kept).code(), Code::already_exists);
    ASSERT_TRUE(regions.remove("field").ok());
    EXPECT_EQ(regions.find("field"), nullptr);
    EXPECT_EQ(regions.remove("field").code(), Code::not_found);
    ASSERT_TRUE(regions.add_memory("field", two.data(), CAIRN_U8, 1, &bytes_kept).ok());
    ASSERT_NE(regions.find("field"), nullptr);
    EXPECT_EQ(regions.find("field")->data, two.data());
    ASSERT_EQ(regions.all().size(), 2u);
    EXPECT_EQ(regions.all().front().name, "other");
}

}  // namespace
}  // namespace cairn
