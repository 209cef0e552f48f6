// What a session tells its daemon before it fills an image.
#include <gtest/gtest.h>

#include <mutex>

#include "client/fake_daemon_testing.hpp"
#include "client/session_testing.hpp"

namespace cairn {
namespace {

// A plan that is made ahead stands only where the image is sealed with the very size that was told: that of its bytes, and not of the slot, which holds more.
TEST_F(Room, ASlotIsAskedForWithTheImagesOwnSize) {
    std::mutex asking;
    std::vector<control::Acquire> asked;
    FakeDaemon daemon(scratch_of("n0"), [&](const control::Request& request) -> control::Answer {
        control::Welcome welcome;
        welcome.program_version = "fake";
        welcome.pid = static_cast<std::uint64_t>(::getpid());
        welcome.node = "n0";
        welcome.address = "tcp:fake";
        welcome.format = format_version;
        if (std::holds_alternative<control::Hello>(request)) return welcome;
        if (std::holds_alternative<control::Images>(request)) return control::ImageList();
        const auto* const acquire = std::get_if<control::Acquire>(&request);
        if (!acquire) return control::Done();
        const std::lock_guard lock(asking);
        asked.push_back(*acquire);
        return control::Failed{Code::io_error, "enough is known"};
    });
    ASSERT_TRUE(daemon.is_there());
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(20'000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    EXPECT_EQ(cairn_checkpoint(session, 1), CAIRN_IO_ERROR) << cairn_last_error(session);
    const std::lock_guard lock(asking);
    ASSERT_EQ(asked.size(), 1u);
    EXPECT_EQ(asked[0].block_bytes, 65'536u);
    EXPECT_GE(asked[0].image_bytes, 20'000u * 8);
    EXPECT_LT(asked[0].image_bytes, 20'000u * 8 + 4096) << "what tells its regions is in it";
    EXPECT_GE(asked[0].bytes, 20'000u * 8 + 4096);
    cairn_close(session);
}

}  // namespace
}  // namespace cairn
