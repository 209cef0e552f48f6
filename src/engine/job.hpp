// A job as one of its nodes knows it: who takes part, where they are, and when they were last heard of.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/codec.hpp"
#include "copies/scratch.hpp"
#include "format/names.hpp"
#include "model/codec_choice.hpp"
#include "model/keys_seen.hpp"
#include "model/messages.hpp"
#include "world/world.hpp"

namespace cairn::engine {

// Where the nodes of a job are: as its roster says, but for those that were heard of from elsewhere since.
struct AddressBook {
    std::shared_ptr<const Roster> roster;
    std::map<NodeIndex, Address> moved;
    const Address& of(NodeIndex node) const;
    void set(NodeIndex node, Address address);
};

struct Flight;
struct Experience;  // the coordinator's: what earlier flushes of the job showed

struct Job {
    Job(World& world, const std::string& persistent, std::shared_ptr<const Roster> r, NodeIndex s);
    std::shared_ptr<const Roster> roster;  // never changed in place: in one process many nodes may hold it
    std::vector<std::string> roots;    // the roster's besides persistent, as its manifests name them
    NodeIndex self;
    AddressBook addresses;             // newest known
    std::map<NodeIndex, Nanos> heard;  // when a node last said anything; none: not since `began`
    std::map<NodeIndex, std::uint32_t> older;  // nodes that last spoke an older format than this daemon, and which: they are not heard
    Nanos began;
    Version committed = 0;  // the highest, and since when
    Nanos committed_at = 0;
    Version base = 0;  // committed, and whole: what newer versions may be stored as changes of, as the coordinator said last; 0: nothing
    std::weak_ptr<Flight> base_flight;  // where its images are, as long as they are in scratch
    std::map<Version, std::map<Rank, BegunImage>> begun;  // on this node, neither sealed nor left by their sources
    std::shared_ptr<Experience> experience;
    std::map<Codec, CodecSeen> codecs_seen;  // on this node, where data were encoded or codecs tried
    KeysSeen keys_seen;                      // the same key by key, where the coordinator does not know it yet
    struct MergingSeen {
        std::uint64_t apart_bytes = 0, merged_bytes = 0, raw_bytes = 0;
    };
    std::map<Codec, MergingSeen> merging_seen;  // the same where merging was tried, and the coordinator does not know it yet

    // What another open's roster of the same incarnation says newly. invalid_argument where it is of other nodes.
    Status renew(const Roster& said, NodeIndex as);
    std::uint32_t nodes() const { return static_cast<std::uint32_t>(roster->members.size()); }
    NodeIndex coordinator() const { return coordinator_of(*roster); }
    bool coordinates() const { return self == coordinator(); }
    bool has_ranks(NodeIndex node) const { return !roster->members[node].ranks.empty(); }  // else it is an I/O node of this job
    const std::vector<Rank>& own_ranks() const { return roster->members[self].ranks; }
    const std::vector<NodeIndex>& io_nodes() const;  // looked for once
    std::uint32_t nodes_with_ranks() const { return nodes() - static_cast<std::uint32_t>(io_nodes().size()); }
    PartFileName part_name(const PartPlan& part, Id128 attempt_id) const { return {part.number(), roster->files, attempt_id, roster->layout, part.replacement}; }
    Nanos last_heard(NodeIndex node) const;
    Nanos last_heard_of_any() const;
    // Below which root a part with this target lies (storage/placement.hpp).
    std::uint32_t root_of(const std::string& target) const;
    std::string node_name(NodeIndex node) const;  // "node 3 (n3, ranks 6 7)", and in it why it is not heard, where that is known
    std::string node_name(NodeIndex node, const std::vector<Rank>& ranks) const;  // some of its ranks

  private:
    mutable std::optional<std::vector<NodeIndex>> io_nodes_;
};
using JobPtr = std::shared_ptr<Job>;

}  // namespace cairn::engine
