// Planner: all sizes become the plan of an attempt: where parts go, how many lead, and what each leader writes. And what the last attempts and flushes
// showed that the next plan should know: nodes, targets and leaders to do without, and what the cards do. The plan itself is a pure function
// (model/plan.cpp), and so is the number of leaders (model/balance.cpp).
//
// A plan needs sizes, and those are known when images begin to be filled: it is made then, ahead of the last seal, and taken for the first attempt where
// nothing that it was made of has changed by then. It is never more than a plan: what is committed was sealed.
#pragma once

#include <optional>
#include <tuple>

#include "engine/coordinator/free_space.hpp"

namespace cairn::engine {

class Planner : CoordinatorRole {
  public:
    explicit Planner(Common& common);

    FreeSpace& free_space() { return free_space_; }

    // Fills the contest's plan, targets and leads; the images of all nodes, none of an I/O node, are the result.
    Result<std::vector<NodeImages>> plan(Flight& flight, Contest& contest);
    // A node's images will have these sizes. True when those of all nodes are known, and there is somebody to plan with them: nobody flushes now.
    bool note_begun(Job& job, Version version, NodeIndex from, message::Begun begun);
    Task<void> plan_ahead(JobPtr job, Version version);
    // It took so long, and nothing held it back.
    void learn_from_success(Flight& flight, const std::vector<NodeImages>& nodes, Nanos took, bool held_back);
    // It is committed: what it may be for later ones.
    void learn_of_base(Flight& flight);
    // What the next attempt does without, of all that failed so far.
    void learn_from_failures(Flight& flight);
    // The images of this node are not to be had until it speaks up again. Without an I/O node all can go on.
    void lose(Flight& flight, NodeIndex node);

  private:
    LeaderChoice& leader_choice(const Job& job) { return leader_choices_[kind(job)]; }
    CodecChoice& codec_choice(const Job& job);
    Version base_for(Job& job, Version version, const std::string& codec) const;
    Result<std::vector<NodeImages>> all_images(const Flight& flight, std::uint64_t& block_bytes) const;
    PlanInput input_of(Job& job, const std::vector<NodeImages>& nodes, std::uint64_t block_bytes);
    static std::vector<PartPlan> plan_flush(const PlanInput& input);
    static Ahead take_ahead(Experience& experience, Version version);
    bool avoid_target_of(Flight& flight, std::uint32_t part, const std::string& why);
    void learn_from_cards(const Flight& flight);
    void tell_codec(const Job& job, const CodecChoice& choice);
    void learn_of_codecs(Job& job, const FlushMeasured& flush);
    void learn_of_merging(const Flight& flight);
    void choose_merging(const Job& job, Contest& contest);
    void tell_unmerged(Job& job, const Status& why);
    void tell_unfilled(Job& job, const PlanInput& input);
    FlushMeasured measured(const Flight& flight, std::uint64_t raw_bytes, double took_s) const;

    FreeSpace free_space_;
    // What numbers of leaders reached, by series, files and nodes; a job that opens again goes on with it.
    using Kind = std::tuple<std::string, std::uint32_t, std::uint32_t>;
    static Kind kind(const Job& job) { return {job.roster->name, job.roster->files, job.nodes()}; }
    std::map<Kind, LeaderChoice> leader_choices_;
    std::map<Kind, CodecChoice> codec_choices_;  // the same of codecs
    std::map<Kind, MergeChoice> merge_choices_;
};

}  // namespace cairn::engine
