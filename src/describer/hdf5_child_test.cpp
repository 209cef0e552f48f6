// cairn-describer as it is: reused, killed between and during requests, stopped, and left by who started it.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <fstream>
#include <functional>
#include <thread>

#include "describer/describer.hpp"
#include "describer/describer_testing.hpp"
#include "describer/hdf5_testing.hpp"

namespace cairn::testing {
namespace {

using std::chrono::milliseconds;

class DescriberChild : public ::testing::Test {
  protected:
    DescriberChild() : path_(folder_.file("good.h5")) {
        Hdf5Writer writer(path_);
        writer.doubles("a", {10, 20}, ramp(200));
        writer.doubles("b", {6, 6}, ramp(36), {.chunk = {3, 6}});
        writer.close();
        bytes_ = bytes_in(path_);
    }
    Result<Description> describe(Describer& describer, milliseconds limit = ample) const { return describer.describe(path_, 0, bytes_.size(), limit); }
    void expect_good(Describer& describer) const {
        const Result<Description> said = describe(describer);
        ASSERT_TRUE(said.ok()) << said.status().to_string();
        EXPECT_EQ(said.value().extents, sound(describe_hdf5(bytes_).value(), bytes_.size()));
        EXPECT_EQ(said.value().extents.size(), 3u);
        EXPECT_EQ(said.value().format, "hdf5");
    }
    // What it is asked then stays unanswered.
    static void stop(pid_t child) {
        ASSERT_GT(child, 0);
        ::kill(child, SIGSTOP);
        for (std::string state; state != "T";) {
            std::ifstream status("/proc/" + std::to_string(child) + "/stat");
            std::string number, name;
            status >> number >> name >> state;
        }
    }

    Folder folder_;
    std::string path_;
    Bytes bytes_;
};

TEST_F(DescriberChild, OneProcessDescribesFileAfterFile) {
    const std::size_t before = open_descriptors();
    {
        Describer describer(CAIRN_DESCRIBER_PROGRAM);
        EXPECT_EQ(describer.child(), 0) << "started before it is needed";
        expect_good(describer);
        const pid_t child = describer.child();
        for (int i = 0; i < 4000 && !HasFailure(); ++i) expect_good(describer);  // whatever signals come and go meanwhile
        EXPECT_EQ(describer.child(), child);
    }
    EXPECT_TRUE(has_no_children());
    EXPECT_EQ(open_descriptors(), before);
}

// Files lie one behind the other in an image, and begin at no page.
TEST_F(DescriberChild, AFileMayLieAnywhereInAnother) {
    const std::string image = folder_.file("image");
    Bytes all(12'345 + bytes_.size() + 999, std::byte{7});
    std::copy(bytes_.begin(), bytes_.end(), all.begin() + 12'345);
    put_bytes(image, all);
    Describer describer(CAIRN_DESCRIBER_PROGRAM);
    const Result<Description> said = describer.describe(image, 12'345, bytes_.size(), ample);
    ASSERT_TRUE(said.ok()) << said.status().to_string();
    EXPECT_EQ(said.value().extents, sound(describe_hdf5(bytes_).value(), bytes_.size()));
    EXPECT_EQ(describer.describe(image, 12'344, bytes_.size(), ample).code(), Code::corrupt);
    EXPECT_EQ(describer.child(), 0) << "its library met what it can not read";
    expect_good(describer);
    const pid_t child = describer.child();
    EXPECT_EQ(describer.describe(image, 12'345, bytes_.size() + 1000, ample).code(), Code::invalid_argument);
    EXPECT_EQ(describer.describe(image, UINT64_MAX, 2, ample).code(), Code::invalid_argument);
    EXPECT_EQ(describer.describe(image, 0, 0, ample).code(), Code::invalid_argument);
    EXPECT_EQ(describer.describe(folder_.file("nothing"), 0, 10, ample).code(), Code::not_found);
    EXPECT_EQ(describer.describe(std::string(9000, 'x'), 0, 10, ample).code(), Code::invalid_argument);
    EXPECT_EQ(describer.describe("/dev/zero", 0, 10, ample).code(), Code::invalid_argument);
    expect_good(describer);
    EXPECT_EQ(describer.child(), child) << "its library saw none of these";
}

TEST_F(DescriberChild, KilledBetweenRequestsNobodyNoticesIt) {
    Describer describer(CAIRN_DESCRIBER_PROGRAM, Describer::Patience{1, std::chrono::hours(1), std::chrono::hours(1)});  // no failure is forgiven: there is none
    expect_good(describer);
    for (int i = 0; i < 20; ++i) {
        const pid_t child = describer.child();
        ASSERT_GT(child, 0);
        ::kill(child, SIGKILL);
        siginfo_t who{};
        ::waitid(P_PID, static_cast<id_t>(child), &who, WEXITED | WNOWAIT);
        expect_good(describer);
        EXPECT_NE(describer.child(), child);
    }
}

TEST_F(DescriberChild, KilledDuringARequestTheRequestFailsAndTheNextOneDoesNot) {
    const std::size_t before = open_descriptors();
    {
        Describer describer(CAIRN_DESCRIBER_PROGRAM, patient);
        expect_good(describer);
        for (int i = 0; i < 20; ++i) {
            const pid_t child = describer.child();
            ASSERT_GT(child, 0);
            stop(child);
            Result<Description> said = unavailable("nothing yet");
            std::thread asking([&] { said = describe(describer); });
            if (i % 2) std::this_thread::sleep_for(milliseconds(2));  // asked before it is killed, or just then
            ::kill(child, SIGKILL);
            asking.join();
            EXPECT_TRUE(said.ok() || said.code() == Code::unavailable) << said.status().to_string();
            expect_good(describer);
            EXPECT_NE(describer.child(), child);
        }
    }
    EXPECT_TRUE(has_no_children());
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(DescriberChild, OneThatStandsStillIsLateAndReplaced) {
    const std::size_t before = open_descriptors();
    {
        Describer describer(CAIRN_DESCRIBER_PROGRAM, patient);
        for (int i = 0; i < 3; ++i) {
            expect_good(describer);
            const pid_t child = describer.child();
            stop(child);
            EXPECT_EQ(describe(describer, milliseconds(100)).code(), Code::deadline);
            EXPECT_TRUE(has_no_children());
        }
        expect_good(describer);
    }
    EXPECT_TRUE(has_no_children());
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(DescriberChild, ManyThreadsAskOneProcess) {
    Describer describer(CAIRN_DESCRIBER_PROGRAM);
    expect_good(describer);
    const pid_t child = describer.child();
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            for (int k = 0; k < 25; ++k) expect_good(describer);
        });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(describer.child(), child);
}

// Its threads end, and it lives on.
TEST_F(DescriberChild, TheThreadThatStartedItMayEnd) {
    Describer describer(CAIRN_DESCRIBER_PROGRAM);
    std::thread([&] { expect_good(describer); }).join();
    const pid_t child = describer.child();
    expect_good(describer);
    EXPECT_EQ(describer.child(), child);
}

// Nothing of a daemon's is open there, and no file that another one names can be opened.
TEST_F(DescriberChild, ItHasNoDescriptorOfItsParentAndLimits) {
    const int inherited = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC
    Describer describer(CAIRN_DESCRIBER_PROGRAM);
    expect_good(describer);
    ::close(inherited);
    const std::string process = "/proc/" + std::to_string(describer.child());
    std::size_t open = 0;
    for (const auto& each : std::filesystem::directory_iterator(process + "/fd")) open += !each.path().empty();
    EXPECT_EQ(open, 3u);
    std::ifstream limits(process + "/limits");
    const std::string text((std::istreambuf_iterator<char>(limits)), {});
    for (const std::string name : {"Max core file size        0 ", "Max file size             0 "}) EXPECT_NE(text.find(name), std::string::npos) << text;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_NE(text.find("Max data size             536870912 "), std::string::npos) << text;
#endif
}

// A process that holds a Describer is killed. How long it takes then until what it started is gone, too, which comes to this process; `then` is what it asks for meanwhile.
std::chrono::duration<double> dies_after_its_parent(const std::function<void(Describer&)>& first, const std::function<void(Describer&)>& then, std::chrono::duration<double> pause) {
    int told[2];
    EXPECT_EQ(::pipe(told), 0);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t parent = ::fork();
    if (parent == 0) {
        Describer describer(CAIRN_DESCRIBER_PROGRAM);
        first(describer);
        const pid_t child = describer.child();
        if (::write(told[1], &child, sizeof child) != sizeof child) ::_exit(1);
        then(describer);
        for (;;) ::pause();
    }
    pid_t child = 0;
    EXPECT_EQ(::read(told[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
    EXPECT_GT(child, 0);
    std::this_thread::sleep_for(pause);
    ::kill(parent, SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    EXPECT_EQ(::waitpid(parent, nullptr, 0), parent);
    if (child > 0) {
        EXPECT_EQ(::waitpid(child, nullptr, 0), child);  // hangs the test where it does not end
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    ::close(told[0]);
    ::close(told[1]);
    return std::chrono::steady_clock::now() - killed;
}

TEST_F(DescriberChild, ItDiesWithItsParent) {
    dies_after_its_parent([&](Describer& describer) { static_cast<void>(describe(describer)); }, [](Describer&) {}, {});
}

// In the middle of a file that takes long: one chunk of as many as may be looked for. It does not wait for the end of it.
TEST_F(DescriberChild, ItDiesWithItsParentAlsoWhileItWorks) {
    const std::string slow = folder_.file("slow.h5");
    {
        Hdf5Writer writer(slow);
        const hsize_t most = chunk_lookups_max, one = 1, last = most - 1;
        const Hdf5Id space(H5Screate_simple(1, &most, nullptr)), memory(H5Screate_simple(1, &one, nullptr)), properties(H5Pcreate(H5P_DATASET_CREATE));
        H5Pset_chunk(properties.get(), 1, &one);
        const Hdf5Id made(H5Dcreate2(writer.file(), "x", H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT));
        H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &last, nullptr, &one, nullptr);
        ASSERT_GE(H5Dwrite(made.get(), H5T_NATIVE_DOUBLE, memory.get(), space.get(), H5P_DEFAULT, ramp(1).data()), 0);
    }
    const std::uint64_t bytes = std::filesystem::file_size(slow);
    const auto ask = [&](Describer& describer) { return describer.describe(slow, 0, bytes, ample); };
    Describer describer(CAIRN_DESCRIBER_PROGRAM);
    expect_good(describer);
    const auto began = std::chrono::steady_clock::now();
    const Result<Description> said = ask(describer);
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - began;
    ASSERT_TRUE(said.ok()) << said.status().to_string();
    EXPECT_EQ(said.value().extents.size(), 1u);
    std::chrono::duration<double> fastest = whole;
    for (int i = 0; i < 5 && fastest >= whole / 2; ++i)
        fastest = std::min(fastest, dies_after_its_parent([&](Describer& theirs) { static_cast<void>(describe(theirs)); }, [&](Describer& theirs) { static_cast<void>(ask(theirs)); }, whole / 8));
    EXPECT_LT(fastest, whole / 2);
}

}  // namespace
}  // namespace cairn::testing
