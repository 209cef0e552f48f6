// Sessions whose daemon ends and comes back at the worst of times, whose children live on, and whose file system is not there.
#include <gmock/gmock.h>

#include <filesystem>

#include "client/session_testing.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Does something in the middle of the first capture.
struct Meddler {
    std::function<void()> meddle;
    int calls = 0;

    int protect(cairn_session* session) {
        const auto size = [](void*, std::uint64_t* bytes) {
            *bytes = 8;
            return 0;
        };
        const auto write = [](void* context, void* into, std::uint64_t bytes) {
            auto& self = *static_cast<Meddler*>(context);
            std::memset(into, 9, bytes);
            if (self.calls++ == 0) self.meddle();
            return 0;
        };
        const auto read = [](void*, const void*, std::uint64_t) { return 0; };
        return cairn_protect_callbacks(session, "meddler", size, write, read, this);
    }
};

class Daemons : public Room {
  protected:
    // By somebody else's session: its daemon has gone through scratch when it is open.
    bool start(const std::string& node) {
        const std::string mine = std::exchange(name_, "another");
        cairn_session* session = open(node);
        name_ = mine;
        return session && cairn_close(session) == CAIRN_OK;
    }
    static std::size_t slots_of(const std::string& process_file) {
        std::ifstream lines(process_file);
        std::size_t count = 0;
        for (std::string line; std::getline(lines, line);) count += line.find("/images/slot-") != std::string::npos;
        return count;
    }
};

TEST_F(Daemons, AForkedChildHasNoSlots) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(1000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(slots_of("/proc/self/maps"), 1u);
    for (const auto& each : fs::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        EXPECT_THAT(fs::read_symlink(each.path(), error).string(), testing::Not(HasSubstr("/images/slot-")));
    }
    EXPECT_EQ(Child([&] {
                  if (slots_of("/proc/self/maps") != 0) return 1;
                  return cairn_close(session) == CAIRN_OK ? 0 : 2;
              }).wait(),
              0);
    field.fill(0, 2);
    EXPECT_EQ(cairn_checkpoint(session, 2), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_wait(session, 2, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

}  // namespace
}  // namespace cairn
