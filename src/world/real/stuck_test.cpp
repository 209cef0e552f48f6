// Operations that do not come back (rule 6): reads of an empty FIFO stand in for a file server that hangs, and opening a file that somebody holds a
// lease of.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>

#include "world/real/files.hpp"
#include "world/real/memory.hpp"
#include "world/real/storage.hpp"
#include "world/real/test_world.hpp"
#include "world/real/world.hpp"

namespace cairn {
namespace {

using test::patience;

std::vector<IoBackend> backends() {
    std::vector<IoBackend> all = {IoBackend::threads};
    if (test::uring_allowed()) all.push_back(IoBackend::uring);
    return all;
}

std::string backend_name(const testing::TestParamInfo<IoBackend>& info) {
    return info.param == IoBackend::uring ? "uring" : "threads";
}

Task<void> short_sleep(Clock& clock) { co_await clock.sleep(millisecond); }

// A file whose open(2) waits until this is let go (fcntl(2), leases; the system itself ends it after 45 s).
class HeldFile {
  public:
    explicit HeldFile(const std::string& path) : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
        EXPECT_EQ(::fcntl(descriptor_, F_SETSIG, SIGURG), 0);  // who is asked to let go is told by a signal: one that does nothing
        EXPECT_EQ(::fcntl(descriptor_, F_SETLEASE, F_WRLCK), 0) << path << ": no lease";
    }
    HeldFile(const HeldFile&) = delete;
    ~HeldFile() { let_go(); }
    void let_go() {
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = -1;
    }

  private:
    int descriptor_;
};

// Past Storage, which opens no FIFO; for reading and writing, so that the open comes back and the read does not.
FilePtr open_fifo(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_GE(fd, 0);
    return std::make_shared<RealFile>(path, fd, -1, [](const std::function<void()>& close) { close(); });
}

class StuckTest : public testing::TestWithParam<IoBackend> {
    std::map<std::string, int> files_;

  protected:
    std::unique_ptr<Loop> loop = test::make_loop();
    std::unique_ptr<RealStorage> storage =
        test::make_storage(*loop, {.backend = GetParam(), .workers = 2, .stuck_max = 4});
    test::TemporaryDirectory directory;
    std::string fifo = directory / "fifo";
    HeldFile held{directory / "held"};

    StuckTest() { EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0); }

    FilePtr open_fifo() { return cairn::open_fifo(fifo); }
    void feed_fifo(std::size_t bytes) {
        const int fd = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
        const std::string text(bytes, 'f');
        EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(bytes));
        ::close(fd);
    }
    template <class Condition>
    bool eventually(Condition condition) {
        const Nanos limit = loop->in(patience);
        while (!condition() && loop->now() < limit) {
            const bool slept = loop->run_until_done(short_sleep(*loop), limit);
            EXPECT_TRUE(slept);
        }
        return condition();
    }
    // On a busy machine an operation may reach its deadline before a thread has taken it, and is then not begun: try
    // again until so many hang.
    void until_quarantined(std::uint64_t count, const std::function<void()>& attempt) {
        const Nanos limit = loop->in(patience);
        while (storage->statistics().quarantined < count && loop->now() < limit) attempt();
        EXPECT_EQ(storage->statistics().quarantined, count);
    }
    void open_hangs() {
        Result<FilePtr> file = loop->run(storage->open(directory / "held", {.mode = OpenMode::read}, loop->in(10 * millisecond)));
        EXPECT_EQ(file.code(), Code::deadline) << file.status().to_string();
    }
    void other_work_goes_on() { work_goes_on_in(directory); }
    void work_goes_on_in(const test::TemporaryDirectory& where) {
        const std::string path = where / std::to_string(++files_[where.path()]);
        const Status written = loop->run(write_file(*storage, path, to_bytes("alive"), 0600, loop->in(patience)));
        EXPECT_TRUE(written.ok()) << written.to_string();
        Result<Bytes> back = loop->run(read_file(*storage, path, 100, loop->in(patience)));
        ASSERT_TRUE(back.ok()) << back.status().to_string();
        EXPECT_EQ(*back, to_bytes("alive"));
    }
};

INSTANTIATE_TEST_SUITE_P(BackEnds, StuckTest, testing::ValuesIn(backends()), backend_name);

TEST_P(StuckTest, ReadIsReportedAtItsDeadlineAndKeepsItsBuffer) {
    const FilePtr file = open_fifo();
    const std::uint64_t before = memory_bytes();
    {
        Result<BufferPtr> buffer = storage->allocate(4096);
        ASSERT_TRUE(buffer.ok());
        until_quarantined(1, [&] {
            const Nanos began = loop->now();
            Result<std::uint64_t> got =
                loop->run(storage->read_some(file, 0, Slice::whole(*buffer), began + 20 * millisecond));
            EXPECT_EQ(got.code(), Code::deadline) << got.status().to_string();
            EXPECT_NE(got.status().text().find(fifo), std::string::npos) << got.status().text();
            EXPECT_GE(loop->now() - began, 20 * millisecond);
        });
        EXPECT_GE(storage->statistics().given_up, 1u);
    }
    EXPECT_GT(memory_bytes(), before) << "the buffer left the memory bound while the system may write to it";
    other_work_goes_on();
    if (GetParam() == IoBackend::threads) feed_fifo(1);  // io_uring takes the read back when asked to
    EXPECT_TRUE(eventually([&] { return storage->statistics().quarantined == 0; }));
    EXPECT_EQ(memory_bytes(), before);
}

TEST_P(StuckTest, OpenThatHangsDoesNotStopOthers) {
    for (std::uint64_t count = 1; count <= 5; ++count) {
        until_quarantined(count, [&] { open_hangs(); });
        other_work_goes_on();
    }
    held.let_go();
    EXPECT_TRUE(eventually([&] { return storage->statistics().quarantined == 0; }));
    other_work_goes_on();
}

TEST_P(StuckTest, MoreStuckThanAllowedMeansDeadlinesNotHanging) {
    const test::TemporaryDirectory local;
    storage = test::make_storage(*loop, {.backend = GetParam(), .workers = 2, .stuck_max = 4, .local = local.path()});
    until_quarantined(6, [&] { open_hangs(); });  // two workers and four replacements
    EXPECT_EQ(loop->run(storage->make_directory(directory / "d", 0700, loop->in(20 * millisecond))).code(),
              Code::deadline);
    EXPECT_FALSE(std::filesystem::exists(directory / "d"));
    work_goes_on_in(local);
    EXPECT_TRUE(loop->run(storage->map(local / "1", false, loop->in(patience))).ok());
    held.let_go();
    EXPECT_TRUE(eventually([&] { return storage->statistics().quarantined == 0; }));
    other_work_goes_on();
    EXPECT_FALSE(std::filesystem::exists(directory / "d")) << "what was given up before it began was done later";
}

TEST_P(StuckTest, DestroyedWaiterGivesUp) {
    const FilePtr file = open_fifo();
    {
        Task<Result<std::uint64_t>> task = storage->read_some(file, 0, Slice::of(Bytes(10)), never);
        task.start();
        EXPECT_TRUE(loop->run_until_done(short_sleep(*loop), loop->in(patience)));
    }
    EXPECT_EQ(storage->statistics().given_up, 1u);
    if (GetParam() == IoBackend::threads) feed_fifo(1);
    EXPECT_TRUE(eventually([&] { return storage->statistics().quarantined == 0; }));
}

TEST_P(StuckTest, StorageCanBeDestroyedMeanwhile) {
    {
        const FilePtr file = open_fifo();
        const Slice into = Slice::of(Bytes(10));
        EXPECT_EQ(loop->run(storage->read_some(file, 0, into, loop->in(5 * millisecond))).code(), Code::deadline);
    }
    storage.reset();
    loop.reset();
    feed_fifo(10);
}

// In a process of its own: an exit that waited for the stuck ones would be ended by the alarm.
[[noreturn]] void exit_with_stuck_operations(IoBackend backend, const test::TemporaryDirectory& directory) {
    ::alarm(60);
    {
        Result<std::unique_ptr<RealWorld>> world = RealWorld::create({.storage = {.backend = backend}});
        Loop& loop = (*world)->loop();
        Storage& storage = (*world)->storage();
        const FilePtr file = open_fifo(directory / "fifo");
        const Slice into = Slice::of(Bytes(4096));
        const Code read = loop.run(storage.read_some(file, 0, into, loop.in(5 * millisecond))).code();
        const Code open = loop.run(storage.open(directory / "held", {}, loop.in(5 * millisecond))).code();
        directory.remove();
        if (read != Code::deadline || open != Code::deadline) std::exit(2);
    }
    std::exit(0);
}

TEST_P(StuckTest, ExitDoesNotWait) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(exit_with_stuck_operations(GetParam(), directory), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cairn
