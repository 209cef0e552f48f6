// RealStorage on both back ends and on tmpfs and a disk, beyond what the conformance suite asks: what is particular to
// this world.
#include "world/real/storage.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "world/gate.hpp"
#include "world/real/files.hpp"
#include "world/real/memory.hpp"
#include "world/real/test_world.hpp"

namespace cairn {
namespace {

using test::patience;

struct Place {
    IoBackend backend;
    std::string below;
};

std::vector<Place> places() {
    std::vector<Place> all;
    for (const IoBackend backend : {IoBackend::threads, IoBackend::uring}) {
        if (backend == IoBackend::uring && !test::uring_allowed()) continue;
        all.push_back({backend, std::filesystem::temp_directory_path().string()});
        if (std::filesystem::exists("/dev/shm")) all.push_back({backend, "/dev/shm"});
    }
    return all;
}

std::string place_name(const testing::TestParamInfo<Place>& info) {
    return std::string(info.param.backend == IoBackend::uring ? "uring" : "threads") +
           (info.param.below == "/dev/shm" ? "_tmpfs" : "_disk");
}

Bytes numbers(std::size_t bytes, unsigned seed = 1) {
    Bytes data(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 31 + i / 251 + seed) & 0xff);
    return data;
}

// The file is made shorter under its mapping. Other mappings, and what was read before, are what they were.
TEST(Mapping, TellsOfBytesThatAreNotToBeHadAnyMore) {
    survive_lost_bytes();
    test::TemporaryDirectory directory;
    const Bytes content = numbers(10 * 4096);
    const auto map = [&](const char* name) {
        std::ofstream(directory / name, std::ios::binary).write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
        return map_file(directory / name, false, [](const std::function<void()>& unmap) { unmap(); }).value();
    };
    for (int again = 0; again < 3; ++again) {
        const BufferPtr whole = map("whole"), cut = map("cut");
        std::filesystem::resize_file(directory / "cut", 4096);
        EXPECT_FALSE(cut->has_lost_bytes());
        EXPECT_EQ(std::memcmp(cut->data(), content.data(), 4096), 0);
        EXPECT_FALSE(cut->has_lost_bytes());
        EXPECT_EQ(cut->data()[5 * 4096 + 7], std::byte{0});
        EXPECT_TRUE(cut->has_lost_bytes());
        EXPECT_EQ(std::memcmp(cut->data(), content.data(), 4096), 0);
        EXPECT_EQ(cut->data()[10 * 4096 - 1], std::byte{0});
        EXPECT_EQ(std::memcmp(whole->data(), content.data(), content.size()), 0);
        EXPECT_FALSE(whole->has_lost_bytes());
    }
}

TEST(Mapping, ABusErrorElsewhereStillEndsTheProcess) {
    EXPECT_EXIT(
        {
            survive_lost_bytes();
            test::TemporaryDirectory directory;
            std::ofstream(directory / "file") << "short";
            const int file = ::open((directory / "file").c_str(), O_RDONLY);
            const auto* bytes = static_cast<const volatile char*>(::mmap(nullptr, 3 * 4096, PROT_READ, MAP_SHARED, file, 0));
            (void)bytes[2 * 4096];
        },
        testing::KilledBySignal(SIGBUS), "");
}

class RealStorageTest : public testing::TestWithParam<Place> {
  protected:
    std::unique_ptr<Loop> loop = test::make_loop();
    std::unique_ptr<RealStorage> storage = test::make_storage(*loop, {.backend = GetParam().backend});
    test::TemporaryDirectory directory{GetParam().below};

    Nanos soon() const { return loop->in(patience); }
    FilePtr must_open(const std::string& path, OpenOptions options) {
        Result<FilePtr> file = loop->run(storage->open(path, options, soon()));
        EXPECT_TRUE(file.ok()) << file.status().to_string();
        return file.ok() ? *file : nullptr;
    }
    FilePtr must_create(const std::string& path, bool direct = false) {
        return must_open(path, {.mode = OpenMode::create, .direct = direct});
    }
    void must(const Status& status) { EXPECT_TRUE(status.ok()) << status.to_string(); }
    // By plain system calls, not through what is tested.
    Bytes content(const std::string& path) {
        FILE* const file = std::fopen(path.c_str(), "rb");
        EXPECT_NE(file, nullptr) << path;
        Bytes data(std::filesystem::file_size(path));
        EXPECT_EQ(std::fread(data.data(), 1, data.size(), file), data.size());
        std::fclose(file);
        return data;
    }
    void put(const std::string& path, const std::string& text) {
        FILE* const file = std::fopen(path.c_str(), "wb");
        EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
        std::fclose(file);
    }
};

INSTANTIATE_TEST_SUITE_P(Everywhere, RealStorageTest, testing::ValuesIn(places()), place_name);

TEST_P(RealStorageTest, UsesTheBackEndAskedFor) {
    EXPECT_EQ(storage->backend_name(), GetParam().backend == IoBackend::uring ? "io_uring" : "threads");
    EXPECT_EQ(storage->backend_reason(), "");
}

TEST_P(RealStorageTest, WritesAreWhereTheyShouldBe) {
    const std::string path = directory / "file";
    const FilePtr file = must_create(path);
    const Bytes data = numbers(3'000'001);
    must(loop->run(write_all(*storage, file, 5, Slice::of(data), soon())));
    must(loop->run(storage->fsync(file, soon())));
    const Bytes on_disk = content(path);
    ASSERT_EQ(on_disk.size(), data.size() + 5);
    EXPECT_EQ(std::memcmp(on_disk.data() + 5, data.data(), data.size()), 0);
    const Slice into = Slice::of(Bytes(data.size()));
    must(loop->run(read_all(*storage, file, 5, into, soon())));
    EXPECT_EQ(std::memcmp(into.data(), data.data(), data.size()), 0);
    EXPECT_EQ(*loop->run(storage->read_some(file, 5 + data.size(), into, soon())), 0u) << "at the end of the file";
}

TEST_P(RealStorageTest, StatisticsCountBytesAndOperations) {
    const FilePtr file = must_create(directory / "file");
    must(loop->run(write_all(*storage, file, 0, Slice::of(numbers(100'000)), soon())));
    must(loop->run(storage->fsync(file, soon())));
    must(loop->run(read_all(*storage, file, 0, Slice::of(Bytes(40'000)), soon())));
    const StorageStatistics& s = storage->statistics();
    EXPECT_EQ(s.write_bytes, 100'000u);
    EXPECT_GE(s.writes, 1u);
    EXPECT_GT(s.write_ns, 0);
    EXPECT_EQ(s.read_bytes, 40'000u);
    EXPECT_EQ(s.fsyncs, 1u);
    EXPECT_EQ(s.given_up, 0u);
}

TEST_P(RealStorageTest, DirectFilesTakeAnyLengthOffsetAndMemory) {
    const std::string path = directory / "file";
    const FilePtr file = must_create(path, true);
    constexpr std::uint64_t bytes = (1 << 20) + 777;
    Result<BufferPtr> buffer = storage->allocate(2 * bytes);
    ASSERT_TRUE(buffer.ok());
    const Bytes data = numbers(2 * bytes);
    std::memcpy((*buffer)->data(), data.data(), data.size());
    const Slice aligned{*buffer, 0, bytes}, crooked{*buffer, 13, bytes};
    must(loop->run(write_all(*storage, file, 0, aligned, soon())));
    must(loop->run(write_all(*storage, file, 2 << 20, crooked, soon())));
    must(loop->run(write_all(*storage, file, (4 << 20) + 5, aligned, soon())));
    must(loop->run(storage->fsync(file, soon())));
    const Bytes on_disk = content(path);
    ASSERT_EQ(on_disk.size(), (4u << 20) + 5 + bytes);
    EXPECT_EQ(std::memcmp(on_disk.data(), data.data(), bytes), 0);
    EXPECT_EQ(std::memcmp(on_disk.data() + (2 << 20), data.data() + 13, bytes), 0);
    EXPECT_EQ(std::memcmp(on_disk.data() + (4 << 20) + 5, data.data(), bytes), 0);

    const FilePtr again = must_open(path, {.mode = OpenMode::read, .direct = true});
    Result<BufferPtr> back = storage->allocate(on_disk.size() + 4096);
    ASSERT_TRUE(back.ok());
    const Slice whole{*back, 0, on_disk.size()};
    must(loop->run(read_all(*storage, again, 0, whole, soon())));
    EXPECT_EQ(std::memcmp(whole.data(), on_disk.data(), on_disk.size()), 0);
    const Slice more{*back, 0, on_disk.size() + 4096};
    EXPECT_EQ(loop->run(read_all(*storage, again, 0, more, soon())).code(), Code::corrupt) << "longer than the file";
}

TEST_P(RealStorageTest, DirectGoesThroughTheDirectDescriptor) {
    const FilePtr file = must_create(directory / "file", true);
    const auto real = std::dynamic_pointer_cast<RealFile>(file);
    if (!real->is_direct()) return;  // this file system has none: then all is buffered, which the test before looked at
    alignas(4096) static std::byte memory[8192];
    EXPECT_TRUE(real->route(memory, 0, 8192).direct);
    EXPECT_EQ(real->route(memory, 4096, 5000).length, 4096u);
    EXPECT_FALSE(real->route(memory, 0, 4095).direct);
    EXPECT_FALSE(real->route(memory, 512, 8192).direct);
    EXPECT_FALSE(real->route(memory + 8, 0, 8192).direct);
    real->refuse_direct();
    EXPECT_FALSE(real->route(memory, 0, 8192).direct);
    EXPECT_EQ(real->route(memory, 0, 8192).length, 8192u);
}

TEST_P(RealStorageTest, DirectIsSilentlyBufferedWhereRefused) {
    const FilePtr file = must_open("/proc/self/stat", {.mode = OpenMode::read, .direct = true});
    Result<BufferPtr> buffer = storage->allocate(4096);
    ASSERT_TRUE(buffer.ok());
    Result<std::uint64_t> got = loop->run(storage->read_some(file, 0, Slice::whole(*buffer), soon()));
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    EXPECT_GT(*got, 0u);
}

TEST_P(RealStorageTest, ErrorsNameOperationAndFile) {
    Result<FilePtr> missing = loop->run(storage->open(directory / "missing", {}, soon()));
    EXPECT_EQ(missing.code(), Code::not_found);
    EXPECT_NE(missing.status().text().find("opening " + directory / "missing"), std::string::npos)
        << missing.status().text();
    Result<FilePtr> folder = loop->run(storage->open(directory.path(), {}, soon()));
    EXPECT_EQ(folder.code(), Code::corrupt) << folder.status().to_string();

    put(directory / "read-only", "text");
    const FilePtr file = must_open(directory / "read-only", {.mode = OpenMode::read});
    const Status status = loop->run(write_all(*storage, file, 7, Slice::of(numbers(10)), soon()));
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.text().find("writing 10 bytes at 7 of " + directory / "read-only"), std::string::npos)
        << status.text();

    const int device = ::open("/dev/full", O_RDWR | O_CLOEXEC);  // Storage opens no device
    const FilePtr full = std::make_shared<RealFile>("/dev/full", device, -1, [](const std::function<void()>& close) { close(); });
    EXPECT_EQ(loop->run(write_all(*storage, full, 0, Slice::of(numbers(10)), soon())).code(), Code::out_of_space);
}

TEST_P(RealStorageTest, FileOfReadModeCanNotBeWritten) {
    put(directory / "file", "text");
    const FilePtr file = must_open(directory / "file", {.mode = OpenMode::read});
    EXPECT_FALSE(loop->run(storage->resize(file, 1, soon())).ok());
    EXPECT_EQ(content(directory / "file").size(), 4u);
}

TEST_P(RealStorageTest, PublishBothWays) {
    using Way = Status (*)(const std::string&, const std::string&);
    for (const Way way : {Way(publish_file), Way(publish_by_link)}) {
        put(directory / "new", "mine");
        must(way(directory / "new", directory / "name"));
        EXPECT_EQ(content(directory / "name"), to_bytes("mine"));
        put(directory / "other", "theirs");
        EXPECT_EQ(way(directory / "other", directory / "name").code(), Code::already_exists);
        EXPECT_EQ(content(directory / "name"), to_bytes("mine"));
        EXPECT_EQ(way(directory / "missing", directory / "fresh").code(), Code::not_found);
        // An earlier try went through and its answer was lost.
        ASSERT_EQ(::link((directory / "name").c_str(), (directory / "new").c_str()), 0);
        must(way(directory / "new", directory / "name"));
        for (const char* name : {"new", "name", "other"}) std::filesystem::remove(directory / name);
    }
}

TEST_P(RealStorageTest, ListIsSortedAndFollowsLinks) {
    put(directory / "b", "12345");
    put(directory / "a", "");
    ASSERT_TRUE(std::filesystem::create_directory(directory / "c"));
    std::filesystem::create_symlink("c", directory / "d");
    std::filesystem::create_symlink("nowhere", directory / "e");
    Result<std::vector<DirectoryEntry>> entries = loop->run(storage->list(directory.path(), soon()));
    ASSERT_TRUE(entries.ok()) << entries.status().to_string();
    const std::vector<DirectoryEntry> expected = {
        {"a", false, 0}, {"b", false, 5}, {"c", true, 0}, {"d", true, 0}, {"e", false, 7}};
    EXPECT_EQ(*entries, expected);
    EXPECT_EQ(loop->run(storage->list(directory / "missing", soon())).code(), Code::not_found);
}

TEST_P(RealStorageTest, MappingIsSharedWithTheFile) {
    put(directory / "file", std::string(10'000, 'x'));
    Result<BufferPtr> mapped = loop->run(storage->map(directory / "file", true, soon()));
    ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
    ASSERT_EQ((*mapped)->size(), 10'000u);
    (*mapped)->data()[9'999] = std::byte{'y'};
    EXPECT_EQ(content(directory / "file")[9'999], std::byte{'y'});
    EXPECT_EQ(memory_bytes(), 0u) << "mapped files are not anonymous memory";

    put(directory / "empty", "");
    Result<BufferPtr> empty = loop->run(storage->map(directory / "empty", false, soon()));
    ASSERT_TRUE(empty.ok()) << empty.status().to_string();
    EXPECT_EQ((*empty)->size(), 0u);

    EXPECT_EQ(loop->run(storage->map(directory / "missing", false, soon())).code(), Code::not_found);
    EXPECT_EQ(loop->run(storage->map(directory.path(), false, soon())).code(), Code::invalid_argument);
    ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
    EXPECT_EQ(loop->run(storage->map(directory / "fifo", false, soon())).code(), Code::invalid_argument);
}

// What somebody put in a file's place is seen, and who opens it is told instead of hanging.
TEST_P(RealStorageTest, WhatIsNoFileIsListedAndDamageWhenOpened) {
    put(directory / "file", "x");
    ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
    ASSERT_EQ(::symlink("nowhere", (directory / "nowhere-link").c_str()), 0);
    ASSERT_EQ(::symlink("file/x", (directory / "through-a-file").c_str()), 0);
    ASSERT_EQ(::symlink("to-itself", (directory / "to-itself").c_str()), 0);
    ASSERT_EQ(::symlink(std::string(300, 'n').c_str(), (directory / "too-long").c_str()), 0);
    ASSERT_EQ(::symlink("fifo", (directory / "fifo-link").c_str()), 0);
    ASSERT_EQ(::symlink("/dev/zero", (directory / "device").c_str()), 0);
    ASSERT_EQ(::symlink("file", (directory / "file-link").c_str()), 0);
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    ASSERT_LT(directory.path().size() + 8, sizeof name.sun_path);
    (directory / "socket").copy(name.sun_path, sizeof name.sun_path - 1);
    const int bound = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(bound, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    ::close(bound);
    const auto entries = loop->run(storage->list(directory.path(), soon()));
    ASSERT_TRUE(entries.ok()) << entries.status().to_string();
    EXPECT_EQ(entries->size(), 10u);
    for (const DirectoryEntry& entry : *entries) {
        EXPECT_FALSE(entry.is_directory) << entry.name;
        const bool is_file = entry.name.starts_with("file");
        const Result<FilePtr> opened = loop->run(storage->open(directory / entry.name, {}, soon()));
        EXPECT_EQ(opened.code(), is_file ? Code::ok : Code::corrupt) << entry.name << ": " << opened.status().to_string();
        if (!is_file) {
            EXPECT_NE(opened.status().text().find("not a file"), std::string::npos) << opened.status().text();
        }
        // What is written over is the file of that name, and not what a link leads to.
        const Result<FilePtr> over = loop->run(storage->open(directory / entry.name, {.mode = OpenMode::write}, soon()));
        EXPECT_EQ(over.code(), entry.name == "file" ? Code::ok : Code::corrupt) << entry.name << ": " << over.status().to_string();
    }
}

TEST_P(RealStorageTest, AFileWithAnotherNameIsNotWrittenOverWhereThatIsAsked) {
    const OpenOptions asked{.mode = OpenMode::write, .sole_name = true};
    put(directory / "file", "x");
    EXPECT_TRUE(loop->run(storage->open(directory / "file", asked, soon())).ok());
    ASSERT_EQ(::link((directory / "file").c_str(), (directory / "copy").c_str()), 0);
    EXPECT_EQ(loop->run(storage->open(directory / "file", asked, soon())).code(), Code::corrupt);
    EXPECT_TRUE(loop->run(storage->open(directory / "file", {.mode = OpenMode::write}, soon())).ok());
}

TEST_P(RealStorageTest, AllocatedMemoryIsAlignedZeroAndCounted) {
    const std::uint64_t before = memory_bytes();
    {
        std::vector<BufferPtr> buffers;
        std::uint64_t asked = 0;
        for (const std::uint64_t bytes : {1ull, 4096ull, 5000ull, (4ull << 20) + 1, 16ull << 20}) {
            Result<BufferPtr> buffer = storage->allocate(bytes);
            ASSERT_TRUE(buffer.ok());
            EXPECT_EQ((*buffer)->size(), bytes);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*buffer)->data()) % 4096, 0u);
            EXPECT_EQ((*buffer)->data()[bytes - 1], std::byte{0});
            buffers.push_back(*buffer);
            asked += bytes;
        }
        EXPECT_GE(memory_bytes() - before, asked);
        EXPECT_LE(memory_bytes() - before, asked + 5 * 65536);
        EXPECT_GE(memory_bytes_peak(), memory_bytes());
    }
    EXPECT_EQ(memory_bytes(), before);
    EXPECT_EQ(storage->allocate(1ull << 50).code(), Code::out_of_space);
    EXPECT_EQ(storage->allocate(UINT64_MAX).code(), Code::out_of_space);
    EXPECT_EQ(memory_bytes(), before);
}

Task<void> write_one(Storage& storage, FilePtr file, std::uint64_t offset, Slice data, Nanos deadline, int& good) {
    const Status status = co_await write_all(storage, file, offset, data, deadline);
    EXPECT_TRUE(status.ok()) << status.to_string();
    good += status.ok() ? 1 : 0;
}

Task<void> write_many(Clock& clock, Storage& storage, FilePtr file, const Bytes& data, std::size_t piece, int& good) {
    Gate gate(clock);
    for (std::size_t at = 0; at < data.size(); at += piece) {
        Bytes bytes(data.begin() + static_cast<std::ptrdiff_t>(at),
                    data.begin() + static_cast<std::ptrdiff_t>(at + piece));
        gate.spawn(write_one(storage, file, at, Slice::of(std::move(bytes)), clock.in(patience), good));
    }
    co_await gate.close();
}

TEST_P(RealStorageTest, MoreOperationsThanTheRingHolds) {
    const std::string path = directory / "file";
    const Bytes data = numbers(2000 * 512);
    int good = 0;
    EXPECT_TRUE(loop->run_until_done(write_many(*loop, *storage, must_create(path), data, 512, good), soon()));
    EXPECT_EQ(good, 2000);
    EXPECT_EQ(content(path), data);
}

TEST_P(RealStorageTest, PastDeadlineIsNotBegun) {
    const FilePtr file = must_create(directory / "file");
    const Nanos past = loop->now();
    EXPECT_EQ(loop->run(write_all(*storage, file, 0, Slice::of(numbers(10)), past)).code(), Code::deadline);
    EXPECT_EQ(loop->run(storage->make_directory(directory / "d", 0755, past)).code(), Code::deadline);
    EXPECT_FALSE(std::filesystem::exists(directory / "d"));
    EXPECT_EQ(content(directory / "file").size(), 0u);
    EXPECT_EQ(storage->statistics().given_up, 0u);
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        count += entry.path().empty() ? 0 : 1;
    return count;
}

TEST_P(RealStorageTest, NothingIsLeftOpen) {
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 20; ++i) {
        const std::string path = directory / std::to_string(i);
        const FilePtr file = must_create(path, true);
        must(loop->run(write_all(*storage, file, 0, Slice::of(numbers(100)), soon())));
        must(loop->run(storage->fsync_directory(directory.path(), soon())));
        ASSERT_TRUE(loop->run(storage->map(path, false, soon())).ok());
        ASSERT_FALSE(loop->run(storage->open(path, {.mode = OpenMode::create}, soon())).ok());
    }
    storage.reset();
    // A file that is being closed is not waited for, since a close may hang (rule 6): it ends after the storage has.
    const Nanos give_up = loop->now() + patience;
    while (open_descriptors() > before && loop->now() < give_up) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_LE(open_descriptors(), before);
}

TEST(RealFiles, ADirectoryInOneThatAGroupSharesIsTheGroups) {
    test::TemporaryDirectory directory;
    const auto mode_of = [&](const std::string& path) {
        struct stat there = {};
        EXPECT_EQ(::stat(path.c_str(), &there), 0) << path;
        return there.st_mode & 07777u;
    };
    const ::mode_t before = ::umask(022);
    for (const auto& [parent, child] : {std::pair(0755u, 0755u), std::pair(0770u, 0770u), std::pair(02775u, 02775u), std::pair(01777u, 0755u)}) {
        const std::string path = directory.path() + "/" + std::to_string(parent);
        ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
        ASSERT_EQ(::chmod(path.c_str(), parent), 0);
        ASSERT_TRUE(make_directory(path + "/in", 0755).ok());
        EXPECT_EQ(mode_of(path + "/in"), child) << std::oct << parent;
    }
    ::umask(before);
}

TEST(RealFiles, AFileInOneThatAGroupSharesIsTheGroups) {
    test::TemporaryDirectory directory;
    const ::mode_t before = ::umask(077);
    struct Case {
        unsigned parent, asked, made;
    };
    for (const Case& each : {Case{0755, 0644, 0600}, {02775, 0644, 0640}, {02775, 0666, 0660}, {02770, 0644, 0640}, {02775, 0600, 0600}, {01777, 0644, 0600}}) {
        const std::string path = directory.path() + "/" + std::to_string(each.parent) + "-" + std::to_string(each.asked);
        ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
        ASSERT_EQ(::chmod(path.c_str(), each.parent), 0);
        const auto close = [](const std::function<void()>& now) { now(); };
        ASSERT_TRUE(RealFile::open(path + "/in", {.mode = OpenMode::create, .permissions = each.asked}, close).ok());
        struct stat there = {};
        ASSERT_EQ(::stat((path + "/in").c_str(), &there), 0);
        EXPECT_EQ(there.st_mode & 07777u, each.made) << std::oct << each.parent << " " << each.asked;
    }
    ::umask(before);
}

TEST(RealStorage, AutomaticSaysWhatItUses) {
    const auto loop = test::make_loop();
    const auto storage = test::make_storage(*loop, {.backend = IoBackend::automatic});
    if (test::uring_allowed()) {
        EXPECT_EQ(storage->backend_name(), "io_uring");
    } else {
        EXPECT_EQ(storage->backend_name(), "threads");
        EXPECT_NE(storage->backend_reason(), "");
    }
}

}  // namespace
}  // namespace cairn
