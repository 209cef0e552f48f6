// Damaged files: whatever the library makes of them, the parent is asked for the next file and answers.
#include <random>

#include "describer/describer.hpp"
#include "describer/describer_testing.hpp"
#include "describer/hdf5_testing.hpp"

namespace cairn::testing {
namespace {

using std::chrono::milliseconds;
using How = Hdf5Writer::How;

class Hdf5Damage : public ::testing::Test {
  protected:
    Hdf5Damage() : good_(folder_.file("good.h5")), bad_(folder_.file("bad.h5")), describer_(CAIRN_DESCRIBER_PROGRAM, {1'000'000, milliseconds(0), milliseconds(0)}) {}
    void write(bool newest) {
        Hdf5Writer writer(good_, 0, newest);
        writer.group("a");
        writer.group("a/b");
        for (int i = 0; i < 12; ++i) writer.doubles("a/x" + std::to_string(i), {10}, ramp(10, i));
        writer.doubles("a/b/chunked", {20, 4}, ramp(80), How{.chunk = {2, 2}, .most = {H5S_UNLIMITED, 4}});
        writer.doubles("packed", {100, 4}, ramp(400), How{.chunk = {50, 4}, .gzip = 4, .shuffle = true});
        writer.close();
        bytes_ = bytes_in(good_);
        whole_ = ask(good_, bytes_.size());
        ASSERT_TRUE(whole_.ok()) << whole_.status().to_string();
        ASSERT_EQ(whole_.value().extents.size(), 12 + 20 + 2u);
    }
    Result<Description> ask(const std::string& path, std::uint64_t length) { return describer_.describe(path, 0, length, ample); }
    // Then the good file again.
    Result<Description> ask_about(const Bytes& damaged) {
        put_bytes(bad_, damaged);
        Result<Description> said = ask(bad_, damaged.size());
        if (!said.ok()) {
            ++codes_[said.code()];
            EXPECT_TRUE(said.code() == Code::corrupt || said.code() == Code::unavailable || said.code() == Code::deadline || said.code() == Code::out_of_space) << said.status().to_string();
        } else {
            ++codes_[Code::ok];
            EXPECT_EQ(sound(said.value().extents, damaged.size()), said.value().extents);
        }
        const Result<Description> good = ask(good_, bytes_.size());
        EXPECT_TRUE(good.ok()) << good.status().to_string();
        if (good.ok()) {
            EXPECT_EQ(good.value().extents, whole_.value().extents);
        }
        return said;
    }

    Folder folder_;
    std::string good_, bad_;
    Describer describer_;
    Bytes bytes_;
    Result<Description> whole_ = unavailable("not yet");
    std::map<Code, int> codes_;
};

TEST_F(Hdf5Damage, CutAnywhereItIsAnError) {
    for (const bool newest : {false, true}) {
        write(newest);
        if (HasFatalFailure()) return;
        for (std::size_t sixteenth = 1; sixteenth < 16; ++sixteenth) {
            Bytes cut = bytes_;
            cut.resize(bytes_.size() * sixteenth / 16);
            EXPECT_EQ(ask_about(cut).code(), Code::corrupt) << sixteenth;
            cut.resize(bytes_.size());  // zeros where it had bytes, as after a power loss
            static_cast<void>(ask_about(cut));
        }
    }
    EXPECT_TRUE(has_no_children() || describer_.child() != 0);
}

TEST_F(Hdf5Damage, WithRandomBytesItHarmsNobody) {
    const std::size_t before = open_descriptors();
    std::mt19937_64 random(20'240'501);
    for (const bool newest : {false, true}) {
        write(newest);
        if (HasFatalFailure()) return;
        for (int i = 0; i < 150; ++i) {
            Bytes flipped = bytes_;
            const std::size_t count = std::size_t{1} << random() % 8;
            for (std::size_t k = 0; k < count; ++k) flipped[random() % flipped.size()] = static_cast<std::byte>(random());
            static_cast<void>(ask_about(flipped));
        }
    }
    for (const auto& [code, count] : codes_) RecordProperty(std::string(code_name(code)), count);
    EXPECT_GT(codes_[Code::corrupt], 0) << "nothing was damaged";
    EXPECT_LE(open_descriptors(), before + 2);  // the child that lives has two
}

}  // namespace
}  // namespace cairn::testing
