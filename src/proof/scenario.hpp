// Scenario: all that one seed draws, as a plain value: the cluster, its settings, how often what goes wrong, and step after step what happens. What
// is drawn can be made smaller (shrink.hpp), written on one line, and read back: `cairn_seeds --scenario '...'` runs it again.
//
// A step draws its details (which node, how long) from a seed of its own, so that leaving one out changes no other.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "proof/cluster.hpp"

namespace cairn::testing {

// What happens in a step. An application's part (capture, cancel, going on), an operator's, and what goes wrong.
enum class Happening : std::uint8_t {
    capture, kill, pause, crash, partition, end_job, remove, limit, start, power, strike, let_go, cancel, open, restore,
    stop, succeed, wait, mount, flip, capture_again, lose, forget, root, depend
};
inline constexpr std::array happening_names = {"capture", "kill", "pause", "crash", "partition", "end", "remove", "limit", "start", "power", "strike",
                                                "let_go", "cancel", "open", "restore", "stop",
                                                "succeed", "wait", "mount", "flip", "capture_again", "lose", "forget", "root", "depend"};

struct Step {
    Happening what = Happening::capture;
    std::uint64_t seed = 0;
    bool operator==(const Step&) const = default;
};

// What goes wrong by itself: how many of a million operations or messages it strikes. `percent` of the seeds with faults have it, up to `most`.
struct FaultClass {
    const char* name;
    double sim::Faults::*rate;
    unsigned percent;
    double most;
};
const std::vector<FaultClass>& fault_classes();

struct Scenario {
    std::uint64_t seed = 1;  // of the simulation: ties between events, and which operations fail
    std::vector<std::uint64_t> ranks_per_node = {1};  // 0: a dedicated I/O node; not the first one
    std::uint64_t layout = 0;  // FileLayout: 1: a file a rank, 2: a file a node, whatever `files` says
    std::uint64_t slots = 1;   // as in FlushSettings
    std::uint64_t files = 1;
    std::uint64_t block_bytes = 4096;
    std::uint64_t image_bytes = 1;  // images are smaller than this, and one in seven is empty
    std::uint64_t image_seed = 0;
    std::uint64_t writers = 1;
    std::uint64_t buffer_bytes = 4096;
    std::uint64_t buffers = 1;
    std::uint64_t placement = 0;  // as in FlushSettings
    std::uint64_t leaders = 0;
    std::uint64_t codec = 0;     // data are encoded before they are written; 2: version by version, as earlier ones showed
    std::uint64_t keys = 0;      // then: data are of several kinds, each for the codec a key
    std::uint64_t encode_at = 0;  // as in FlushSettings
    std::uint64_t full_every = 1;  // the same; then images keep their sizes for some versions, and the codec is one that takes a base
    std::uint64_t merge_ranks = 1, merge_bytes = 4096;  // the same; 0: as trials say
    std::uint64_t equal = 0;     // equal pages are stored once, and ranks so far apart have the same bytes; 0: neither
    std::uint64_t attempts = 3;  // before the waiters are told
    std::uint64_t versions = 64;        // remembered, and what follows: FlushLimits
    std::uint64_t answers = 4096;
    std::uint64_t message_units = 512u << 10;
    std::uint64_t message_pieces = 64u << 10;
    std::uint64_t guests = 1024;
    std::uint64_t small_io = 0;  // I/O nodes' buffers are half a block
    std::uint64_t roots = 0;       // below which parts lie; none: below persistent. Not with old_format
    std::uint64_t persistent_too = 0;  // besides these
    std::uint64_t old_format = 0;  // images and rosters in scratch are as a release with format 1 left them
    std::uint64_t regions = 0;     // of each image that has bytes, some of them tiny; 0: one, of all of it
    std::uint64_t once = 0;        // images can be read once only: 1: some, 2: all of every other version
    std::uint64_t asked = 0;       // ranks give images when they are asked: 1: some, 2: all of every other version; 3, 4: and are late now and then, or leave
    std::uint64_t begins = 0;      // ranks tell their daemon how long an image will be: 0: none does, 1: all, 2: some, 3: all, and some are wrong
    std::uint64_t alone = 0;  // at the end no rank lives any more, and daemons are started again
    std::uint64_t read_bytes = 64ull << 20;  // at once, by a restore
    std::uint64_t share = 0;  // ranks of a node restore at the same time, too, and share runs on so many shelves
    std::uint64_t storage_bytes_s = 1'000'000'000;
    std::uint64_t nic_bytes_s = 1'000'000'000;
    std::vector<std::uint64_t> target_bytes_s;  // of each storage target; none: no limit
    std::uint64_t placed = 0;    // the engine knows the targets
    std::uint64_t gone = 0;      // the mark of so many targets, the first ones, means nothing any more
    std::uint64_t delay_ms = 0;  // that a message or payload is late, at most
    std::uint64_t apart_s = 0;   // clocks, of processes and on walls, at most
    std::vector<std::uint64_t> faults;  // by class, of a million; shorter: zeros
    std::vector<Step> steps;
    bool operator==(const Scenario&) const = default;

    std::uint64_t ranks() const;
    double fault(double sim::Faults::*rate) const;
    // Messages are lost, late and repeated, and that is all: no attempt may fail by it.
    bool only_messages_suffer() const;
    // Nothing goes wrong, but flushes give way to the application, with few and small buffers: no attempt may fail by it either.
    bool only_limits_hold() const;
};

// The plain numbers of a scenario: their names, what they may be, and what is simplest.
struct ScenarioNumber {
    const char* name;
    std::uint64_t Scenario::*value;
    std::uint64_t least, most;
    std::uint64_t simplest;
};
const std::vector<ScenarioNumber>& scenario_numbers();

Scenario draw_scenario(std::uint64_t seed);
sim::Faults faults_of(const Scenario& scenario);
ClusterOptions cluster_of(const Scenario& scenario);

// "seed=7 ranks=2,1 files=2 loss=300000 steps=capture:5,kill:9". What is as in a default Scenario is left out.
std::string to_text(const Scenario& scenario);
Result<Scenario> parse_scenario(const std::string& text);

}  // namespace cairn::testing
