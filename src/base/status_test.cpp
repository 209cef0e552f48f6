#include "base/status.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cairn
