// What the tests of drivers share: each driver is asked the same in the simulated world and on this machine.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/driver.hpp"
#include "world/real/test_world.hpp"
#include "world/real/world.hpp"
#include "world/sim/simulation.hpp"

namespace cairn::testing {

struct SimPlace {
    World world() { return process.world(); }
    std::string persistent() const { return "/persistent"; }
    bool run(Task<void> task) { return sim.run(std::move(task), sim.now() + 1000 * second); }

    sim::Simulation sim{1};
    sim::Process& process = sim.add_node().start_process("cairnd");
};

struct RealPlace {
    World world() { return made->world(); }
    std::string persistent() const { return directory.path(); }
    bool run(Task<void> task) { return made->loop().run_until_done(std::move(task), made->loop().in(test::patience)); }

    test::TemporaryDirectory directory;
    std::unique_ptr<RealWorld> made = RealWorld::create({}).value();
};

template <class Place>
struct DriverTest : ::testing::Test {
    static constexpr Nanos io_wait = 20 * second;

    // What a task gives; it must end.
    template <class T>
    T result_of(Task<T> task) {
        std::optional<T> result;
        const auto keep = [](Task<T> inner, std::optional<T>* out) -> Task<void> {
            T value = co_await inner;
            out->emplace(std::move(value));
        };
        CAIRN_CHECK(place.run(keep(std::move(task), &result)));
        return std::move(*result);
    }
    // A new directory, in persistent.
    std::string make_root(const std::string& name) {
        const std::string path = place.persistent() + "/" + name;
        const Status made = result_of(place.world().storage.make_directory(path, 0755, place.world().clock.in(io_wait)));
        EXPECT_TRUE(made.ok()) << made.to_string();
        return path;
    }
    NewFile file_below(const std::string& root, const std::string& name, const std::string& target = {}) const {
        NewFile asked;
        asked.root = root;
        asked.path = root + "/" + name;
        asked.target = target;
        asked.directory_made_by = "somebody";
        return asked;
    }
    // The answer is in `placed`.
    Status create(StorageDriver& driver, NewFile asked) {
        placed = {};
        return result_of(driver.create(std::move(asked), placed, io_wait));
    }
    std::vector<TargetFill> fill(StorageDriver& driver, std::vector<std::string> names) {
        return result_of(driver.fill(std::move(names), place.world().clock.in(io_wait)));
    }
    Code found(const std::string& path) {
        const OpenOptions reading;
        return result_of(place.world().storage.open(path, reading, place.world().clock.in(io_wait))).code();
    }

    Place place;
    PlacedFile placed;
};

using DriverPlaces = ::testing::Types<SimPlace, RealPlace>;

}  // namespace cairn::testing
