// What the parts of a coordinator have in common: what it remembers of a version, and of a job from flush to flush.
#pragma once

#include "engine/coordinator/contest.hpp"
#include "engine/role.hpp"
#include "storage/target_map.hpp"
#include "world/channel.hpp"

namespace cairn::engine {

struct CoordinatorSide {
    explicit CoordinatorSide(Nanos since) : sealed_heard(since) {}
    bool coordinating = false, cancel = false;
    std::string cancel_text;  // why it can not be committed; none: the application gave it up
    std::map<NodeIndex, message::Sealed> sealed;  // of nodes with ranks
    NodeIndex none_missing_below = 0;
    std::set<NodeIndex> once_sealed;  // it was there, though it may be lost now
    std::map<NodeIndex, std::pair<Nanos, Nanos>> lacking;  // nodes with ranks that say that they have not sealed it: since when, and when they last did
    Nanos sealed_heard;               // when anybody last said that he holds it
    std::optional<message::Ended> ended;
    bool lost_io_node = false;  // the last attempt did, and might have succeeded without it
    std::optional<Contest> contest;
    std::uint32_t attempts = 0;
    bool leaves_files = false;  // a part was replaced, and what there was of it may still lie on its target
    std::set<std::string> made_below;  // roots that have this version's directory, so perhaps files of attempts

    bool complete(const Job& job) const { return sealed.size() == job.nodes_with_ranks(); }
    std::vector<NodeIndex> missing(const Job& job) const;  // nodes with ranks that did not say that they sealed it
    std::vector<NodeIndex> first_missing(const Job& job);  // one of them, if any, for those who only need to know whether: all of them for each of all would be the square
    std::uint64_t sealed_bytes() const;  // of all images that were told; at most bytes_max
    void lose(NodeIndex node);
};

constexpr Nanos avoided_for = 300 * second;  // a leader, or a target, that made an attempt fail

// All that a plan is made of.
struct PlanInput {
    std::vector<NodeImages> nodes;  // ranks and bytes alone
    PlanOptions options;            // without part_blocks
    std::vector<std::string> targets;
    std::uint64_t turn = 0;         // of the targets
    std::vector<std::string> node_targets;  // of each node with ranks, where each rank or node has a file; none: the file system chooses
    bool operator==(const PlanInput&) const = default;
};

// A version that is being captured: the sizes that its images will have, and the plan that they give. It has no flight, and nobody waits for it.
struct Ahead {
    std::map<NodeIndex, message::Begun> begun;
    std::optional<PlanInput> input;
    std::vector<PartPlan> plan;  // of that input
};

// What earlier flushes of a job showed, and whose turn it is.
struct Experience {
    explicit Experience(World& world, const Job& job);
    Channel<char> turn;                    // one flush of a job at a time: whoever holds the token
    std::uint64_t placement_turn;          // of the targets, one an attempt
    std::map<std::string, Nanos> avoided;  // targets on which a part failed, and until when
    std::map<std::string, std::uint64_t> free_bytes;  // of targets, when they were last looked at; none: not known
    Nanos free_bytes_until = 0;            // they are as good as new; an attempt uses them up
    std::map<std::string, Nanos> full;     // targets that were full in looks enough, and until when nobody looks again
    std::map<Version, Ahead> ahead;        // few
    Version base = 0;                      // the newest that was committed whole; 0: none that others may depend on
    std::uint32_t since_base = 0;          // versions that were committed after it, and depend on it
    std::map<NodeIndex, Nanos> unfit;      // leaders that failed by themselves, and until when
    std::set<NodeIndex> absent;            // I/O nodes that did not answer
    std::optional<TargetMap> target_map;   // where each rank or node has a file, and targets can be chosen
    bool keeps_target_map = true;          // false: it was made in this job, and no file has it yet
    bool has_told_unfilled = false;        // that there are fewer files than targets
    bool has_told_twice = false;           // that tensors of one name are in several files
    bool has_told_unmerged = false;        // that footers have no room for what would be merged
};

class CoordinatorRole : protected Role {
  protected:
    explicit CoordinatorRole(Common& c) : Role(c) {}
    static CoordinatorSide& side(Flight& flight);
    static const CoordinatorSide& side(const Flight& flight) { return *flight.coordinator; }
    Experience& experience(Job& job) const;
    bool is_avoided(Job& job, const std::string& target) const;
    // A target that failed gets no part for a while: the next attempt would fail there, too.
    void avoid(Job& job, const std::string& target, const std::string& why);
    // A leader that is told more than a message can hold would never answer: the attempt ends (Contest::unsendable).
    void send(Flight& flight, NodeIndex to, message::Body body);
};

}  // namespace cairn::engine
