// What every Storage must do (the contract of storage.hpp), whatever its transfers and latencies. See conformance.hpp.
#pragma once

#include <algorithm>

#include "world/conformance.hpp"

namespace cairn::conformance {

template <class Bench>
class StorageConformance : public ::testing::Test {
  protected:
    using Body = Task<void> (*)(Bench&);
    void run(Body body) { EXPECT_TRUE(bench_.run(body(bench_))) << "the test did not end within the bench's limit"; }
    Bench bench_;
};
TYPED_TEST_SUITE_P(StorageConformance);

// Both file systems in turn.
template <class Bench>
std::vector<std::string> roots(Bench& bench) {
    return {bench.scratch(), bench.persistent()};
}

template <class Bench>
Task<void> storage_write_then_read(Bench& bench) {
    Storage& storage = bench.storage();
    for (const std::string& root : roots(bench)) {
        OpenOptions options;
        options.mode = OpenMode::create;
        const std::string path = root + "/f";
        Result<FilePtr> file = co_await storage.open(path, options, never);
        CO_ASSERT_OK(file);
        EXPECT_EQ((*file)->path(), path);
        const Bytes first = pattern(100'003, 1), second = pattern(5'000, 2);
        Status wrote = co_await write_all(storage, *file, 0, Slice::of(first), never);
        CO_ASSERT_OK(wrote);
        wrote = co_await write_all(storage, *file, 50'001, Slice::of(second), never);
        CO_ASSERT_OK(wrote);
        wrote = co_await write_all(storage, *file, 200'000, Slice::of(second), never);  // leaves a hole
        CO_ASSERT_OK(wrote);
        Bytes expected(205'000);
        std::copy(first.begin(), first.end(), expected.begin());
        std::copy(second.begin(), second.end(), expected.begin() + 50'001);
        std::copy(second.begin(), second.end(), expected.begin() + 200'000);
        Result<std::uint64_t> bytes = co_await storage.file_bytes(*file, never);
        CO_ASSERT_OK(bytes);
        EXPECT_EQ(*bytes, expected.size());
        const Bytes all = co_await bytes_of(storage, path);
        EXPECT_TRUE(all == expected);
    }
}

template <class Bench>
Task<void> storage_end_of_file(Bench& bench) {
    Storage& storage = bench.storage();
    const std::string path = bench.persistent() + "/f";
    const bool put = co_await put_file(storage, path, pattern(1000));
    CO_ASSERT(put);
    OpenOptions options;
    Result<FilePtr> file = co_await storage.open(path, options, never);
    CO_ASSERT_OK(file);
    Slice into = Slice::of(Bytes(500));
    Result<std::uint64_t> got = co_await storage.read_some(*file, 1000, into, never);
    CO_ASSERT_OK(got);
    EXPECT_EQ(*got, 0u);
    got = co_await storage.read_some(*file, 1'000'000, into, never);
    CO_ASSERT_OK(got);
    EXPECT_EQ(*got, 0u);
    got = co_await storage.read_some(*file, 900, into, never);
    CO_ASSERT_OK(got);
    EXPECT_GE(*got, 1u);
    EXPECT_LE(*got, 100u);
    Status all = co_await read_all(storage, *file, 900, into, never);
    EXPECT_EQ(all.code(), Code::corrupt);  // ends early
    Result<Bytes> large = co_await read_file(storage, path, 999, never);
    EXPECT_EQ(large.code(), Code::corrupt);
    const bool empty = co_await put_file(storage, bench.persistent() + "/empty", Bytes());
    CO_ASSERT(empty);
    const Bytes nothing = co_await bytes_of(storage, bench.persistent() + "/empty");
    EXPECT_TRUE(nothing.empty());
}

template <class Bench>
Task<void> storage_open_modes(Bench& bench) {
    Storage& storage = bench.storage();
    for (const std::string& root : roots(bench)) {
        const bool put = co_await put_file(storage, root + "/f", pattern(10));
        CO_ASSERT(put);
        Code code = co_await open_code(storage, root + "/f", OpenMode::create);
        EXPECT_EQ(code, Code::already_exists);
        code = co_await open_code(storage, root + "/missing", OpenMode::read);
        EXPECT_EQ(code, Code::not_found);
        code = co_await open_code(storage, root + "/missing", OpenMode::write);
        EXPECT_EQ(code, Code::not_found);
        code = co_await open_code(storage, root + "/missing/f", OpenMode::create);
        EXPECT_EQ(code, Code::not_found);
        code = co_await open_code(storage, root, OpenMode::read);
        EXPECT_EQ(code, Code::corrupt) << "a directory in a file's place is damage, not somebody's wrong argument";
        OpenOptions options;
        Result<FilePtr> reader = co_await storage.open(root + "/f", options, never);
        CO_ASSERT_OK(reader);
        Result<std::uint64_t> wrote = co_await storage.write_some(*reader, 0, Slice::of(pattern(10, 2)), never);
        EXPECT_FALSE(wrote.ok());
        Status resized = co_await storage.resize(*reader, 5, never);
        EXPECT_FALSE(resized.ok());
        options.mode = OpenMode::write;
        Result<FilePtr> writer = co_await storage.open(root + "/f", options, never);
        CO_ASSERT_OK(writer);
        Status status = co_await write_all(storage, *writer, 3, Slice::of(pattern(4, 3)), never);
        CO_ASSERT_OK(status);
        Bytes expected = pattern(10);
        const Bytes patch = pattern(4, 3);
        std::copy(patch.begin(), patch.end(), expected.begin() + 3);
        const Bytes all = co_await bytes_of(storage, root + "/f");
        EXPECT_TRUE(all == expected);
    }
}

// Data goes file -> allocated buffer -> other file, without the test looking into the buffer.
template <class Bench>
Task<void> storage_allocated_buffers(Bench& bench) {
    Storage& storage = bench.storage();
    for (int direct = 0; direct < 2; ++direct) {
        const std::string from = bench.scratch() + "/from" + std::to_string(direct), to = bench.persistent() + "/to" + std::to_string(direct);
        const Bytes content = pattern(3 * 65536 + 17);
        const bool put = co_await put_file(storage, from, content);
        CO_ASSERT(put);
        Result<BufferPtr> buffer = storage.allocate(1 << 20);
        CO_ASSERT_OK(buffer);
        EXPECT_EQ((*buffer)->size(), 1u << 20);
        OpenOptions options;
        Result<FilePtr> source = co_await storage.open(from, options, never);
        CO_ASSERT_OK(source);
        options.mode = OpenMode::create;
        options.direct = direct == 1;
        Result<FilePtr> target = co_await storage.open(to, options, never);
        CO_ASSERT_OK(target);
        Slice slice{*buffer, 8192, content.size()};
        Status status = co_await read_all(storage, *source, 0, slice, never);
        CO_ASSERT_OK(status);
        status = co_await write_all(storage, *target, 0, slice.part(0, 131072), never);
        CO_ASSERT_OK(status);
        status = co_await write_all(storage, *target, 131072, slice.part(131072, content.size() - 131072), never);
        CO_ASSERT_OK(status);
        const Bytes all = co_await bytes_of(storage, to);
        EXPECT_TRUE(all == content);
        Slice back{*buffer, 0, content.size()};  // and read directly, too
        status = co_await read_all(storage, *target, 0, back, never);
        CO_ASSERT_OK(status);
    }
}

template <class Bench>
Task<void> storage_resize(Bench& bench) {
    Storage& storage = bench.storage();
    for (const std::string& root : roots(bench)) {
        const std::string path = root + "/f";
        OpenOptions options;
        options.mode = OpenMode::create;
        Result<FilePtr> file = co_await storage.open(path, options, never);
        CO_ASSERT_OK(file);
        Status status = co_await write_all(storage, *file, 0, Slice::of(pattern(10'000)), never);
        CO_ASSERT_OK(status);
        status = co_await storage.resize(*file, 4'000, never);
        CO_ASSERT_OK(status);
        status = co_await storage.resize(*file, 9'000, never);
        CO_ASSERT_OK(status);
        Bytes expected = pattern(10'000);
        expected.resize(4'000);
        expected.resize(9'000);
        const Bytes all = co_await bytes_of(storage, path);
        EXPECT_TRUE(all == expected);
    }
}

template <class Bench>
Task<void> storage_publish(Bench& bench) {
    Storage& storage = bench.storage();
    const std::string root = bench.persistent();
    const bool put = co_await put_file(storage, root + "/one", pattern(500, 1));
    const bool put_too = co_await put_file(storage, root + "/two", pattern(500, 2));
    CO_ASSERT(put && put_too);
    Status status = co_await storage.publish(root + "/one", root + "/name", never);
    CO_ASSERT_OK(status);
    status = co_await storage.publish(root + "/two", root + "/name", never);
    EXPECT_EQ(status.code(), Code::already_exists);
    Bytes published = co_await bytes_of(storage, root + "/name");
    EXPECT_TRUE(published == pattern(500, 1));
    const Bytes kept = co_await bytes_of(storage, root + "/two");  // a lost race takes nothing away
    EXPECT_TRUE(kept == pattern(500, 2));
    status = co_await storage.publish(root + "/missing", root + "/other", never);
    EXPECT_EQ(status.code(), Code::not_found);
    status = co_await storage.publish(root + "/two", root + "/nowhere/name", never);
    EXPECT_EQ(status.code(), Code::not_found);
    Status removed = co_await storage.remove(root + "/one", never);  // whether it is there still or not
    EXPECT_TRUE(removed.ok() || removed.code() == Code::not_found);
    published = co_await bytes_of(storage, root + "/name");
    EXPECT_TRUE(published == pattern(500, 1));
}

template <class Bench>
Task<void> storage_replace(Bench& bench) {
    Storage& storage = bench.storage();
    const std::string root = bench.persistent();
    const bool put = co_await put_file(storage, root + "/one", pattern(500, 1));
    const bool put_too = co_await put_file(storage, root + "/two", pattern(700, 2));
    CO_ASSERT(put && put_too);
    OpenOptions reading;
    Result<FilePtr> open_before = co_await storage.open(root + "/one", reading, never);
    CO_ASSERT(open_before.ok());
    Status status = co_await storage.replace(root + "/two", root + "/one", never);
    CO_ASSERT_OK(status);
    const Bytes standing = co_await bytes_of(storage, root + "/one");
    EXPECT_TRUE(standing == pattern(700, 2));
    Result<std::uint64_t> held = co_await storage.file_bytes(*open_before, never);
    EXPECT_EQ(held.ok() ? *held : 0, 500u) << "who had it open keeps the old one";
    status = co_await storage.remove(root + "/two", never);
    EXPECT_EQ(status.code(), Code::not_found) << "the first name is gone";
    status = co_await storage.replace(root + "/one", root + "/fresh", never);
    CO_ASSERT_OK(status);  // nothing need stand there
    status = co_await storage.replace(root + "/missing", root + "/fresh", never);
    EXPECT_EQ(status.code(), Code::not_found);
    const Bytes kept = co_await bytes_of(storage, root + "/fresh");
    EXPECT_TRUE(kept == pattern(700, 2));
}

struct Race {
    int won = 0, lost = 0, other = 0;
    void count(Code code) { ++(code == Code::ok ? won : code == Code::already_exists ? lost : other); }
};

inline Task<void> race_publish(Storage& storage, std::string from, std::string to, Race& race) {
    Status status = co_await storage.publish(from, to, never);
    race.count(status.code());
}
inline Task<void> race_create(Storage& storage, std::string path, Race& race) {
    const Code code = co_await open_code(storage, path, OpenMode::create);
    race.count(code);
}
inline Task<void> race_make(Storage& storage, std::string path, Race& race) {
    Status status = co_await storage.make_directory(path, 0755, never);
    race.count(status.code());
}

template <class Bench>
Task<void> storage_races(Bench& bench) {
    constexpr int racers = 8;
    Storage& storage = bench.storage();
    const std::string root = bench.persistent();
    for (int i = 0; i < racers; ++i) {
        const bool put = co_await put_file(storage, root + "/from" + std::to_string(i), pattern(10));
        CO_ASSERT(put);
    }
    Race publishing, creating, making;
    Gate gate(bench.clock());
    for (int i = 0; i < racers; ++i) {
        gate.spawn(race_publish(storage, root + "/from" + std::to_string(i), root + "/published", publishing));
        gate.spawn(race_create(storage, root + "/created", creating));
        gate.spawn(race_make(storage, root + "/made", making));
    }
    const bool closed = co_await gate.close(never);
    CO_ASSERT(closed);
    for (const Race& race : {publishing, creating, making}) {
        EXPECT_EQ(race.won, 1);
        EXPECT_EQ(race.lost, racers - 1);
        EXPECT_EQ(race.other, 0);
    }
}

template <class Bench>
Task<void> storage_placing(Bench& bench) {
    Storage& storage = bench.storage();
    for (const std::string& root : roots(bench)) {
        OpenOptions options;
        options.mode = OpenMode::create;
        options.placing.by = "nobody";
        options.placing.targets = {"nowhere"};
        Result<FilePtr> file = co_await storage.open(root + "/placed", options, never);
        CO_ASSERT_OK(file);
        EXPECT_FALSE((*file)->is_placed()) << "nobody can, and it is made as ever";
        const Result<FilePtr> again = co_await storage.open(root + "/placed", options, never);
        EXPECT_EQ(again.code(), Code::already_exists);
        const Result<std::vector<TargetRoom>> rooms = co_await storage.target_rooms(root, "nobody", never);
        EXPECT_EQ(rooms.code(), Code::unsupported);
    }
}

template <class Bench>
Task<void> storage_directories(Bench& bench) {
    Storage& storage = bench.storage();
    for (const std::string& root : roots(bench)) {
        Status status = co_await make_directories(storage, root, root + "/a/b/c", never);
        CO_ASSERT_OK(status);
        status = co_await make_directories(storage, root, root + "/a/b/c", never);  // again
        CO_ASSERT_OK(status);
        status = co_await storage.make_directory(root + "/a/b", 0755, never);
        EXPECT_EQ(status.code(), Code::already_exists);
        status = co_await storage.make_directory(root + "/x/y", 0755, never);
        EXPECT_EQ(status.code(), Code::not_found);
        const bool put = co_await put_file(storage, root + "/a/zz", pattern(7));
        const bool put_too = co_await put_file(storage, root + "/a/aa", pattern(70'000));
        CO_ASSERT(put && put_too);
        const Result<std::uint64_t> room = co_await storage.free_bytes(root + "/a", never);
        CO_ASSERT_OK(room);
        EXPECT_GT(*room, 0u);
        const Result<std::uint64_t> nowhere = co_await storage.free_bytes(root + "/x", never);
        EXPECT_EQ(nowhere.code(), Code::not_found);
        Result<std::vector<DirectoryEntry>> listed = co_await storage.list(root + "/a", never);
        CO_ASSERT_OK(listed);
        CO_ASSERT(listed->size() == 3);
        EXPECT_EQ((*listed)[0], (DirectoryEntry{"aa", false, 70'000}));
        EXPECT_EQ((*listed)[1].name, "b");
        EXPECT_TRUE((*listed)[1].is_directory);
        EXPECT_EQ((*listed)[2], (DirectoryEntry{"zz", false, 7}));
        status = co_await storage.remove_directory(root + "/a/b", never);
        EXPECT_EQ(status.code(), Code::already_exists);  // not empty
        status = co_await storage.remove_directory(root + "/a/b/c", never);
        CO_ASSERT_OK(status);
        status = co_await storage.remove(root + "/a/b", never);
        EXPECT_FALSE(status.ok());  // is a directory
        status = co_await storage.remove_directory(root + "/a/b", never);
        CO_ASSERT_OK(status);
        status = co_await storage.remove_directory(root + "/a/b", never);
        EXPECT_EQ(status.code(), Code::not_found);
        listed = co_await storage.list(root + "/a/b", never);
        EXPECT_EQ(listed.code(), Code::not_found);
    }
}

template <class Bench>
Task<void> storage_remove(Bench& bench) {
    Storage& storage = bench.storage();
    for (const std::string& root : roots(bench)) {
        const std::string path = root + "/f";
        bool put = co_await put_file(storage, path, pattern(1000, 1));
        CO_ASSERT(put);
        OpenOptions options;
        Result<FilePtr> file = co_await storage.open(path, options, never);
        CO_ASSERT_OK(file);
        Status status = co_await storage.remove(path, never);
        CO_ASSERT_OK(status);
        status = co_await storage.remove(path, never);
        EXPECT_EQ(status.code(), Code::not_found);
        put = co_await put_file(storage, path, pattern(1000, 2));  // another file of that name
        CO_ASSERT(put);
        auto buffer = std::make_shared<BytesBuffer>(Bytes(1000));
        Slice into = Slice::whole(buffer);
        status = co_await read_all(storage, *file, 0, into, never);
        CO_ASSERT_OK(status);
        EXPECT_TRUE(buffer->bytes() == pattern(1000, 1));  // who holds it open keeps it
    }
}

template <class Bench>
Task<void> storage_fsync(Bench& bench) {
    Storage& storage = bench.storage();
    for (const std::string& root : roots(bench)) {
        OpenOptions options;
        options.mode = OpenMode::create;
        Result<FilePtr> file = co_await storage.open(root + "/f", options, never);
        CO_ASSERT_OK(file);
        Status status = co_await write_all(storage, *file, 0, Slice::of(pattern(100)), never);
        CO_ASSERT_OK(status);
        status = co_await storage.fsync(*file, never);
        CO_ASSERT_OK(status);
        status = co_await storage.fsync_directory(root, never);
        CO_ASSERT_OK(status);
        status = co_await storage.fsync_directory(root + "/missing", never);
        EXPECT_EQ(status.code(), Code::not_found);
        status = co_await storage.fsync_name(root + "/f", never);
        CO_ASSERT_OK(status);
        status = co_await storage.fsync_name(root + "/missing/f", never);
        EXPECT_EQ(status.code(), Code::not_found);
    }
}

template <class Bench>
Task<void> storage_map(Bench& bench) {
    Storage& storage = bench.storage();
    const std::string path = bench.scratch() + "/slot";
    const Bytes content = pattern(300'000);
    const bool put = co_await put_file(storage, path, content);
    CO_ASSERT(put);
    Result<BufferPtr> map = co_await storage.map(path, true, never);
    CO_ASSERT_OK(map);
    Result<BufferPtr> again = co_await storage.map(path, false, never);
    CO_ASSERT_OK(again);
    EXPECT_EQ((*map)->size(), content.size());
    CO_ASSERT((*map)->data() != nullptr && (*again)->data() != nullptr);  // as the file has real bytes only
    EXPECT_TRUE(std::equal(content.begin(), content.end(), (*map)->data()));
    (*map)->data()[4097] ^= std::byte{1};  // seen by the other mapping, by readers and in writes from it
    Bytes changed = content;
    changed[4097] ^= std::byte{1};
    EXPECT_TRUE(std::equal(changed.begin(), changed.end(), (*again)->data()));
    const Bytes all = co_await bytes_of(storage, path);
    EXPECT_TRUE(all == changed);
    OpenOptions options;
    options.mode = OpenMode::create;
    Result<FilePtr> target = co_await storage.open(bench.persistent() + "/f", options, never);
    CO_ASSERT_OK(target);
    Status status = co_await write_all(storage, *target, 0, Slice::whole(*again), never);
    CO_ASSERT_OK(status);
    const Bytes copied = co_await bytes_of(storage, bench.persistent() + "/f");
    EXPECT_TRUE(copied == changed);
    options.mode = OpenMode::write;
    Result<FilePtr> file = co_await storage.open(path, options, never);
    CO_ASSERT_OK(file);
    status = co_await write_all(storage, *file, 10, Slice::of(pattern(50, 9)), never);
    CO_ASSERT_OK(status);
    const Bytes patch = pattern(50, 9);
    EXPECT_TRUE(std::equal(patch.begin(), patch.end(), (*map)->data() + 10));
    status = co_await storage.remove(path, never);  // a mapping outlives the name
    CO_ASSERT_OK(status);
    EXPECT_TRUE(std::equal(patch.begin(), patch.end(), (*map)->data() + 10));
    Result<BufferPtr> missing = co_await storage.map(path, false, never);
    EXPECT_EQ(missing.code(), Code::not_found);
}

inline Task<void> write_piece(Storage& storage, FilePtr file, std::uint64_t offset, Bytes bytes, int& done) {
    Status status = co_await write_all(storage, file, offset, Slice::of(std::move(bytes)), never);
    EXPECT_TRUE(status.ok()) << text_of(status);
    ++done;
}

template <class Bench>
Task<void> storage_many_at_once(Bench& bench) {
    constexpr std::uint64_t pieces = 64, piece_bytes = 10'007;
    Storage& storage = bench.storage();
    for (const std::string& root : roots(bench)) {
        OpenOptions options;
        options.mode = OpenMode::create;
        Result<FilePtr> file = co_await storage.open(root + "/f", options, never);
        CO_ASSERT_OK(file);
        Bytes expected;
        int done = 0;
        Gate gate(bench.clock());
        for (std::uint64_t i = 0; i < pieces; ++i) {
            const Bytes piece = pattern(piece_bytes, static_cast<unsigned>(i));
            expected.insert(expected.end(), piece.begin(), piece.end());
            gate.spawn(write_piece(storage, *file, i * piece_bytes, piece, done));
        }
        const bool closed = co_await gate.close(never);
        CO_ASSERT(closed);
        EXPECT_EQ(done, static_cast<int>(pieces));
        const Bytes all = co_await bytes_of(storage, root + "/f");
        EXPECT_TRUE(all == expected);
    }
}

// An operation whose waiter goes away, and one that has no time: the file, the buffer and the loop live on.
template <class Bench>
Task<void> storage_abandoned(Bench& bench) {
    Storage& storage = bench.storage();
    const std::string path = bench.persistent() + "/f";
    OpenOptions options;
    options.mode = OpenMode::create;
    int done = 0;
    {
        Result<FilePtr> file = co_await storage.open(path, options, never);
        CO_ASSERT_OK(file);
        Gate gate(bench.clock());
        for (unsigned i = 0; i < 16; ++i) gate.spawn(write_piece(storage, *file, i * 100'000, pattern(100'000, i), done));
        Result<std::uint64_t> late = co_await storage.write_some(*file, 0, Slice::of(pattern(10)), bench.clock().now() - 1);
        EXPECT_TRUE(late.ok() || late.code() == Code::deadline);
        Result<Bytes> read = co_await read_file(storage, path, 1 << 30, bench.clock().now() - 1);
        EXPECT_TRUE(read.ok() || read.code() == Code::deadline);
    }
    co_await bench.clock().sleep(20 * millisecond);
    const bool put = co_await put_file(storage, bench.persistent() + "/g", pattern(10));
    EXPECT_TRUE(put);
}

TYPED_TEST_P(StorageConformance, WriteThenRead) { this->run(storage_write_then_read<TypeParam>); }
TYPED_TEST_P(StorageConformance, EndOfFile) { this->run(storage_end_of_file<TypeParam>); }
TYPED_TEST_P(StorageConformance, OpenModes) { this->run(storage_open_modes<TypeParam>); }
TYPED_TEST_P(StorageConformance, AllocatedBuffersCarryContent) { this->run(storage_allocated_buffers<TypeParam>); }
TYPED_TEST_P(StorageConformance, Resize) { this->run(storage_resize<TypeParam>); }
TYPED_TEST_P(StorageConformance, PublishNeverReplaces) { this->run(storage_publish<TypeParam>); }
TYPED_TEST_P(StorageConformance, ReplaceIsOneStep) { this->run(storage_replace<TypeParam>); }
TYPED_TEST_P(StorageConformance, OneWinsARace) { this->run(storage_races<TypeParam>); }
TYPED_TEST_P(StorageConformance, Directories) { this->run(storage_directories<TypeParam>); }
TYPED_TEST_P(StorageConformance, AFileThatNobodyCanPlace) { this->run(storage_placing<TypeParam>); }
TYPED_TEST_P(StorageConformance, RemovedWhileOpen) { this->run(storage_remove<TypeParam>); }
TYPED_TEST_P(StorageConformance, Fsync) { this->run(storage_fsync<TypeParam>); }
TYPED_TEST_P(StorageConformance, MapShares) { this->run(storage_map<TypeParam>); }
TYPED_TEST_P(StorageConformance, ManyAtOnce) { this->run(storage_many_at_once<TypeParam>); }
TYPED_TEST_P(StorageConformance, AbandonedOperations) { this->run(storage_abandoned<TypeParam>); }
REGISTER_TYPED_TEST_SUITE_P(StorageConformance, WriteThenRead, EndOfFile, OpenModes, AllocatedBuffersCarryContent, Resize,
                            PublishNeverReplaces, ReplaceIsOneStep, OneWinsARace, Directories, AFileThatNobodyCanPlace, RemovedWhileOpen, Fsync, MapShares, ManyAtOnce,
                            AbandonedOperations);

}  // namespace cairn::conformance
