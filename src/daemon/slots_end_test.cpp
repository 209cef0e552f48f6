// Slots: what goes at the daemon's end.
#include <future>

#include "base/log.hpp"
#include "daemon/slots_testing.hpp"

namespace cairn {
namespace {

class SlotsEndTest : public SlotsTest {
  protected:
    void TearDown() override {
        log_off();
        SlotsTest::TearDown();
    }
    std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator())); }
    // Nothing removes it as a file.
    static void put_directory_at(const std::string& path) {
        fs::remove(path);
        fs::create_directory(path);
    }
    std::string log() {
        std::ifstream file(log_file_);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    const std::string log_file_ = persistent / "log";
};

// A daemon that ends while ranks ask for slots: what is being allocated for them, and what was made ahead, does not stay behind.
TEST_F(SlotsEndTest, ADaemonThatEndsLeavesNoSlotThatWasBeingMade) {
    begin();
    checkpoint(1);
    const std::size_t sealed = slots_->count();
    Gate gate(world_->loop());
    Result<control::Slot> asked = unavailable("not told yet");
    const auto ask = [](Slots& slots, control::Acquire request, Result<control::Slot>& out) -> Task<void> {
        Result<control::Slot> slot = co_await slots.acquire(bob, std::move(request));
        out = std::move(slot);
    };
    gate.spawn(ask(*slots_, wanted(0, 64 * mib, 2, 60'000), asked));  // nothing is free: it allocates
    gate.spawn(slots_->prepare_next());
    world_->loop().run(slots_->remove_unsealed(*removers_, in(60 * second)));
    world_->loop().run(gate.close());
    EXPECT_EQ(asked.code(), Code::unavailable) << asked.status().to_string();
    EXPECT_EQ(slots_->count(), sealed);
    EXPECT_EQ(static_cast<std::size_t>(std::distance(fs::directory_iterator(scratch / "images"), fs::directory_iterator())), sealed);
}

// In a file system that does not answer, until the test ends.
class Hanging final : public Job {
  public:
    explicit Hanging(std::shared_future<void> end) : end_(std::move(end)) {}
    void run() override { end_.wait_for(std::chrono::seconds(60)); }
    void finished() override {}

  private:
    std::shared_future<void> end_;
};

TEST_F(SlotsEndTest, WhatHangsInTheWorkersKeepsNoSlot) {
    begin();
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(acquire(alice, wanted(0, mib)).ok());
    std::promise<void> end;
    const std::shared_future<void> ended = end.get_future().share();
    for (unsigned i = 0; i < WorkerPoolOptions().threads_max; ++i) ASSERT_TRUE(workers_->submit(std::make_shared<Hanging>(ended)).ok());
    world_->loop().run(slots_->remove_unsealed(*removers_, in(5 * second)));
    EXPECT_EQ(files(), 0u);
    end.set_value();
}

TEST_F(SlotsEndTest, WhatStaysIsCountedAndTold) {
    begin();
    std::vector<std::string> paths;
    for (int i = 0; i < 5; ++i) paths.push_back(acquire(alice, wanted(0, mib))->path);
    for (const std::size_t i : {1u, 3u}) put_directory_at(paths[i]);
    ASSERT_TRUE(log_to_file(log_file_, LogLevel::info).ok());
    world_->loop().run(slots_->remove_unsealed(*removers_, in(60 * second)));
    EXPECT_EQ(files(), 2u);
    EXPECT_NE(log().find("slots-stay count=2 bytes=2097152 "), std::string::npos) << log();
    const auto names = [&](std::size_t i) { return log().find(paths[i]) != std::string::npos; };
    EXPECT_TRUE(names(1) || names(3)) << log();  // one of them: removers work beside each other
}

TEST_F(SlotsEndTest, OnlyWhatWentIsFreed) {
    begin();
    checkpoint(1);
    const auto images = slots_->pin_images(carol, "heat").images;
    slots_->unpin(carol);
    ASSERT_EQ(images.size(), 2u);
    put_directory_at(images[0].path);
    EXPECT_EQ(world_->loop().run(slots_->remove_versions({images[0].key}, *removers_, in(60 * second))), mib);
    EXPECT_FALSE(fs::exists(images[1].path));
}

}  // namespace
}  // namespace cairn
