#include "base/status.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace cairn {
namespace {

TEST(Status, context_stands_in_front_and_a_path_is_named_once) {
    const Status status = not_found("reading /p/part-0: gone");
    EXPECT_EQ(status.within("version 3").text(), "version 3: reading /p/part-0: gone");
    EXPECT_EQ(status.within("/p/part-0").text(), "reading /p/part-0: gone");
    EXPECT_EQ(status.within("/p/part-1").text(), "/p/part-1: reading /p/part-0: gone");
    EXPECT_EQ(not_found("gone").within("gone").text(), "gone: gone") << "words may come twice";
    EXPECT_TRUE(Status().within("/p").ok());
}

TEST(Status, a_file_system_that_calls_a_name_invalid_is_away) {
    EXPECT_TRUE(is_away(Status::from_errno(EINVAL, "opening /p/part-0"))) << "GlusterFS, of what lies on a server that is away";
    EXPECT_FALSE(is_away(Status::from_errno(ENAMETOOLONG, "opening /p")));
}

}  // namespace
}  // namespace cairn
