// Functions of the application that throw: an error with a text, on all ranks, and nothing that waits for a rank that is gone.
#include "client/guarded.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

#include "client/exchange.hpp"
#include "client/session_testing.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;

TEST(Guarded, ExceptionsBecomeStatuses) {
    EXPECT_TRUE(call_application("it", [] { return 0; }).ok());
    EXPECT_EQ(call_application("it", [] { return 5; }).to_string(), "cancelled: it refused with 5");
    EXPECT_EQ(call_application("it", []() -> int { throw std::runtime_error("no way"); }).to_string(), "cancelled: it threw: no way");
    EXPECT_EQ(call_application("it", []() -> int { throw 7; }).code(), Code::cancelled);
    EXPECT_EQ(guarded([]() -> Status { throw std::bad_alloc(); }).code(), Code::out_of_space);
    EXPECT_EQ(guarded([]() -> Result<int> { throw std::logic_error("?"); }).code(), Code::internal);
}

TEST(Guarded, ACollectiveOfTheCallerThatThrowsFailsTheCall) {
    cairn_exchange calls = {};
    calls.struct_bytes = sizeof calls;
    calls.allgather = [](void*, const void*, void*, std::uint64_t, std::uint64_t) -> int { throw std::runtime_error("the wire is cut"); };
    calls.broadcast = [](void*, void*, std::uint64_t, std::uint64_t) -> int { throw 1; };
    calls.release = [](void*) { throw 2; };
    CallerExchange exchange(0, 2, calls);
    const Status status = exchange.agree({}, Deadline::in_ms(1000));
    EXPECT_EQ(status.code(), Code::unavailable);
    EXPECT_THAT(status.text(), HasSubstr("allgather threw: the wire is cut"));
    EXPECT_EQ(exchange.broadcast({}, Deadline::in_ms(1000)).code(), Code::unavailable);
}

struct Moody {
    std::string throws;  // which of the three

    static int size(void* context, std::uint64_t* bytes) {
        *bytes = 8;
        return static_cast<Moody*>(context)->say("size");
    }
    static int write(void* context, void* into, std::uint64_t bytes) {
        std::memset(into, 1, bytes);
        return static_cast<Moody*>(context)->say("serialise");
    }
    static int read(void* context, const void*, std::uint64_t) { return static_cast<Moody*>(context)->say("deserialise"); }
    int say(const char* which) const {
        if (throws == which) throw std::runtime_error(std::string("not in the mood to ") + which);
        return 0;
    }
};

// Rank 1's callbacks throw, one after the other; rank 0 hears of what is collective.
int with_moody_callbacks(cairn_session* session, std::uint32_t rank) {
    RETURN_UNLESS(session != nullptr);
    Moody moody;
    RETURN_UNLESS(cairn_protect_callbacks(session, "mood", &Moody::size, &Moody::write, &Moody::read, &moody) == CAIRN_OK);
    const auto said = [&](const char* which) {
        return std::string(cairn_last_error(session)).find(std::string("not in the mood to ") + which) != std::string::npos;
    };
    if (rank == 1) {
        for (const char* which : {"size", "serialise"}) {
            moody.throws = which;
            RETURN_UNLESS(cairn_checkpoint(session, 1) == CAIRN_CANCELLED && said(which));
        }
        moody.throws = "deserialise";
    }
    RETURN_UNLESS(cairn_checkpoint(session, 1) == CAIRN_OK);
    RETURN_UNLESS(cairn_wait(session, 1, CAIRN_COMMITTED, 30'000) == CAIRN_OK);
    RETURN_UNLESS(cairn_restore(session, 1, nullptr) == CAIRN_CANCELLED && said("deserialise"));
    moody.throws.clear();
    RETURN_UNLESS(cairn_restore(session, 1, nullptr) == CAIRN_OK);
    return cairn_close(session) == CAIRN_OK ? 0 : 1;
}

TEST_F(Room, AnExceptionInACallbackIsHeardByAllRanks) {
    Child one([&] { return with_moody_callbacks(open("n0", 1, 2), 1); });
    EXPECT_EQ(Child([&] { return with_moody_callbacks(open("n0", 0, 2), 0); }).wait(), 0);
    EXPECT_EQ(one.wait(), 0);
}

}  // namespace
}  // namespace cairn
