// Jobs of one node over a real scratch and a real persistent directory: what the tests of jobs and of their images share.
#pragma once

#include "daemon/boot.hpp"
#include "daemon/jobs.hpp"
#include "daemon/slots_testing.hpp"

namespace cairn {

class JobsTest : public SlotsTest {
  protected:
    void SetUp() override {
        SlotsTest::SetUp();
        fs::create_directory(scratch / "jobs");
    }
    void TearDown() override {
        jobs_.reset();
        files_.reset();
        SlotsTest::TearDown();
    }
    // A daemon begins: the job of SlotsTest has joined its node already.
    void begin_jobs() {
        begin();
        World world = this->world();
        files_.emplace(world, *workers_, layout(), scratch_layout(), io_wait_);
        jobs_.emplace(world, *node_, *files_, "n0", io_wait_);
    }
    World world() {
        const World real = world_->world();
        return {real.clock, *storage_, real.network, real.random, real.cpu};
    }
    Layout layout() { return {persistent / "files"}; }
    ScratchLayout scratch_layout() { return {scratch.path()}; }
    // A job that the node does not know yet, of one rank.
    Roster stranger(std::uint64_t epoch, const std::string& name = "heat") {
        Roster roster = roster_;
        roster.name = name;
        roster.incarnation = {9, epoch};
        roster.epoch = epoch;
        roster.ranks = 1;
        roster.members = {{"n0", "", {0}}};
        put_on_record(layout(), roster);
        return roster;
    }
    // What a daemon that is started now finds in scratch of rank 0 of a job: a sealed image, in nobody's slot.
    LocalImage leave_image(const Roster& roster, Version version) {
        const Roster own = std::exchange(roster_, roster);
        const auto slot = acquire(carol, wanted(0, mib, version));
        write(*slot, version, 0);
        LocalImage image = **read(slot->path);
        roster_ = own;
        slots_ = std::make_unique<Slots>(world_->loop(), *workers_, *node_, directory_, SlotSettings());
        return image;
    }
    // What a daemon of this boot has written down: else nothing that has no proof is believed.
    void note_boot() { EXPECT_TRUE(Boot::look(scratch_layout()).note(scratch_layout()).ok()); }
    template <class T>
    T run(Task<T> task) {
        return world_->loop().run(std::move(task));
    }
    static bool never_over() { return false; }

    std::optional<JobFiles> files_;
    std::optional<Jobs> jobs_;
};

}  // namespace cairn
