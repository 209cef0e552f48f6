// What a machine that was started again leaves on a scratch disk. No machine is: a note in scratch says of another boot.
#include "daemon/boot.hpp"

#include <sys/stat.h>

#include "daemon/daemon_testing.hpp"
#include "daemon/slot_files.hpp"

namespace cairn {
namespace {

using namespace cairn::test;

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(Boot, IsToldByTheNote) {
    for (const std::string& room : {std::string("/dev/shm"), fs::temp_directory_path().string()}) {
        std::string pattern = room + "/cairn-boot-XXXXXX";
        if (!::mkdtemp(pattern.data())) continue;
        const ScratchLayout layout{pattern};
        fs::create_directory(layout.images());
        const bool in_memory = is_in_memory(layout.images());
        const std::string id_path = pattern + "/kernel";
        const auto look = [&] { return Boot::look(layout, id_path); };
        EXPECT_EQ(look().is_same, in_memory) << "neither says anything";
        EXPECT_FALSE(look().noted);
        write_text(id_path, "first\n");
        EXPECT_EQ(look().is_same, in_memory) << "of a release that wrote no notes";
        EXPECT_FALSE(look().noted);
        ASSERT_TRUE(look().note(layout).ok());
        EXPECT_TRUE(look().is_same && look().noted);
        write_text(id_path, "second\n");
        EXPECT_FALSE(look().is_same || look().noted);
        EXPECT_NE(look().why, "");
        write_text(layout.boot(), "");  // torn
        EXPECT_FALSE(look().noted);
        fs::remove(id_path);
        EXPECT_FALSE(look().noted);
        fs::remove_all(pattern);
    }
}

// Version 1 of one rank, committed, and with its checksums beside it in scratch. Returns its slot.
std::string commit_one(Home& home) {
    EXPECT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(1));
    const control::Slot slot = commit(client, home.roster(1), 1);
    EXPECT_TRUE(becomes_true([&] { return read_text(slot.path).substr(image_checksummed_offset, 8) == "CRNCSUMD"; }));
    home.kill_daemon();
    return slot.path;
}

std::size_t images_after_start(Home& home) {
    EXPECT_EQ(home.start(), 0) << home.errors();
    std::size_t count = 0;
    {
        Client client(home.layout);
        client.hello();
        // Data are read behind everybody's back; the note is written when all were.
        EXPECT_TRUE(becomes_true([&] { return read_text(home.layout.boot()) == read_text("/proc/sys/kernel/random/boot_id"); })) << home.log();
        count = client.expect<control::ImageList>(control::Images{"heat"}).images.size();
    }
    home.kill_daemon();
    return count;
}

void flip(const std::string& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    const char was = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(was ^ 0x40));
}

TEST(Boot, ImagesThatProveThemselvesStay) {
    Home home;
    const std::string slot = commit_one(home);
    const std::string noted = read_text(home.layout.boot());
    EXPECT_EQ(noted, read_text("/proc/sys/kernel/random/boot_id"));
    struct stat about = {};
    ASSERT_EQ(::stat(home.layout.boot().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u);
    write_text(home.layout.boot(), "another boot\n");
    EXPECT_EQ(images_after_start(home), 1u) << home.log();
    EXPECT_EQ(read_text(home.layout.boot()), noted);
    flip(slot, fs::file_size(slot) / 8);  // in its data; of the same boot nobody looks
    EXPECT_EQ(images_after_start(home), 1u) << home.log();
    write_text(home.layout.boot(), "another boot\n");
    EXPECT_EQ(images_after_start(home), 0u) << home.log();
    EXPECT_NE(home.log().find("image-not-believed name=heat version=1 rank=0"), std::string::npos) << home.log();
    EXPECT_FALSE(fs::exists(slot));
    EXPECT_EQ(read_text(home.layout.boot()), noted);
}

// A daemon that was killed while it looked at an older boot's images leaves the rest to the next one. What was sealed since has no proof, and needs none.
TEST(Boot, OnlyWhatTheNoteDoubtsIsLookedAtAgain) {
    Home home;
    const std::string slot = commit_one(home);
    ASSERT_EQ(home.start(), 0) << home.errors();
    std::string fresh;
    {
        Client client(home.layout);
        join(client, home.roster(2));
        fresh = seal(client, home.roster(2), 2).path;  // rank 1 never: it is not flushed
    }
    home.kill_daemon();
    const std::string noted = read_text(home.layout.boot());
    const std::string doubt = Id128{1, 2}.hex() + " 1 0 " + slot.substr(slot.rfind('/') + 1) + "\n";
    write_text(home.layout.boot(), noted + doubt);
    EXPECT_EQ(images_after_start(home), 2u) << home.log();  // the doubt is gone
    flip(slot, fs::file_size(slot) / 8);
    write_text(home.layout.boot(), noted + doubt);
    EXPECT_EQ(images_after_start(home), 1u) << home.log();
    EXPECT_FALSE(fs::exists(slot));
    EXPECT_TRUE(fs::exists(fresh));
}

// Sealed images that the daemon knows of; none while it still looks at scratch.
std::optional<std::size_t> images_known(Client& client) {
    const auto answer = client.ask(control::Images{"heat"});
    if (!answer.ok() || !std::holds_alternative<control::ImageList>(*answer)) return std::nullopt;
    return std::get<control::ImageList>(*answer).images.size();
}

// Nobody knows what is in it: it stays, and so do the doubt about it and the jobs, one of which may be its own.
TEST(Boot, WhatCanNotBeReadKeepsItsDoubt) {
    Home home;
    home.expect_unreadable();
    const std::string slot = commit_one(home);
    const std::string noted = read_text(home.layout.boot());
    const std::string left = home.layout.jobs() + "/" + Id128{7, 7}.hex() + ".new-1-1";
    write_text(left, "half");
    Unreadable unreadable(slot);
    write_text(home.layout.boot(), "another boot\n");
    ASSERT_EQ(home.start(), 0) << home.errors();
    {
        Client client(home.layout);
        client.hello(true);
        EXPECT_TRUE(becomes_true([&] { return images_known(client) == 0u; })) << home.log();
        client.expect<control::Done>(control::Join{home.roster(1), 0, 0});  // and it ends with nothing of it unfinished
        client.expect<control::Stopped>(control::Stop{60'000});
    }
    EXPECT_TRUE(becomes_true([&] { return home.nobody_lives(); }));
    EXPECT_EQ(read_text(home.layout.boot()), noted + "unread " + slot.substr(slot.rfind('/') + 1) + "\n");
    EXPECT_TRUE(fs::exists(home.layout.job({1, 2})));
    EXPECT_FALSE(fs::exists(left)) << "what a daemon was writing when it died";
    EXPECT_NE(home.log().find("image-can-not-be-read path=" + slot), std::string::npos) << home.log();
    unreadable.end();
    flip(slot, fs::file_size(slot) / 8);
    EXPECT_EQ(images_after_start(home), 0u) << home.log();
    EXPECT_NE(home.log().find("image-not-believed name=heat version=1 rank=0"), std::string::npos) << home.log();
}

TEST(Boot, WhatCanNotBeReadAtFirstIsReadLater) {
    Home home;
    home.expect_unreadable();
    const std::string slot = commit_one(home);
    for (const std::string& path : {home.layout.job({1, 2}), slot}) {
        Unreadable unreadable(path);
        ASSERT_EQ(home.start(), 0) << home.errors();
        {
            Client client(home.layout);
            client.hello();
            EXPECT_TRUE(becomes_true([&] { return home.log().find("opening " + path) != std::string::npos; })) << home.log();
            unreadable.end();
            EXPECT_TRUE(becomes_true([&] { return images_known(client) == 1u; })) << home.log();
        }
        home.kill_daemon();
    }
}

// Table and data of an older image, under the header of this one.
TEST(Boot, ATableOfAnotherImageProvesNothing) {
    Home home;
    const std::string slot = commit_one(home);
    flip(slot, image_proof_offset);
    write_text(home.layout.boot(), "another boot\n");
    EXPECT_EQ(images_after_start(home), 0u) << home.log();
}

TEST(Boot, ImagesWithoutChecksumsAreDiscardedAfterARestartOfTheMachine) {
    for (const bool restarted : {false, true}) {
        Home home;
        ASSERT_EQ(home.start(), 0) << home.errors();
        {
            Client client(home.layout);
            join(client, home.roster(2));
            seal(client, home.roster(2), 1);  // and rank 1 never: nobody reads it
        }
        home.kill_daemon();
        if (restarted) write_text(home.layout.boot(), "another boot\n");
        EXPECT_EQ(images_after_start(home), restarted ? 0u : 1u) << home.log();
        EXPECT_EQ(home.log().find("no checksums were stored") != std::string::npos, restarted) << home.log();
        if (restarted) {
            EXPECT_EQ(images_after_start(home), 0u);
        }
    }
}

}  // namespace
}  // namespace cairn
