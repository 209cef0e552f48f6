// The real world proves itself: threads and, where the kernel allows it, io_uring; on a disk and on tmpfs.
// (FabricNetwork: fabric_test.cpp.)
#include <memory>

#include "world/checksummed_conformance.hpp"
#include "world/clock_conformance.hpp"
#include "world/cpu_conformance.hpp"
#include "world/real/test_world.hpp"
#include "world/real/world.hpp"
#include "world/storage_conformance.hpp"

namespace cairn::test {

inline std::string disk_path() { return std::filesystem::temp_directory_path().string(); }
inline std::string tmpfs_path() { return std::filesystem::exists("/dev/shm") ? "/dev/shm" : disk_path(); }

// Everything that belongs to the loop is gone before the loop is; the directories go last.
template <IoBackend backend, std::string (*scratch_path)(), std::string (*persistent_path)()>
struct RealBench {
    bool run(Task<void> task) { return made->loop().run_until_done(std::move(task), made->loop().in(patience)); }
    Clock& clock() { return made->loop(); }
    Storage& storage() { return made->storage(); }
    Cpu& cpu() { return made->cpu(); }
    std::string scratch() { return scratch_directory.path(); }
    std::string persistent() { return persistent_directory.path(); }

    TemporaryDirectory scratch_directory{scratch_path()}, persistent_directory{persistent_path()};
    std::unique_ptr<RealWorld> made = RealWorld::create({.storage = {.backend = backend}}).value();
};

}  // namespace cairn::test

namespace cairn::conformance {

using test::disk_path;
using test::tmpfs_path;
using Benches = ::testing::Types<test::RealBench<IoBackend::threads, tmpfs_path, disk_path>,
                                 test::RealBench<IoBackend::threads, disk_path, tmpfs_path>,
                                 test::RealBench<IoBackend::automatic, tmpfs_path, disk_path>,
                                 test::RealBench<IoBackend::automatic, disk_path, tmpfs_path>>;
using Bench = test::RealBench<IoBackend::automatic, tmpfs_path, disk_path>;
INSTANTIATE_TYPED_TEST_SUITE_P(Real, StorageConformance, Benches);
INSTANTIATE_TYPED_TEST_SUITE_P(Real, ChecksummedConformance, Benches);
INSTANTIATE_TYPED_TEST_SUITE_P(Real, ClockConformance, Bench);
INSTANTIATE_TYPED_TEST_SUITE_P(Real, CpuConformance, Bench);

}  // namespace cairn::conformance
