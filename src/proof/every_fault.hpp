// Every fault there is, as plain values: of a whole node or network between two steps of a run, or of one operation of one process. A fault is
// written as "17:kill:0" (after step 17, of node 0), "40:power" or "o23:hang" (of operation 23).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proof/seed_run.hpp"

namespace cairn::testing {

struct Fault {
    bool of_operation = false;
    std::uint64_t at = 0;        // a step or an operation, from 1
    std::string_view name;       // of step_faults() or operation_faults()
    NodeIndex node = 0;          // of a fault that strikes one node
    bool operator==(const Fault&) const = default;
};

// Between two steps.
struct StepFault {
    const char* name;
    bool of_node;
    bool (*possible)(SeedRun& run, NodeIndex node);
    void (*strike)(SeedRun& run, NodeIndex node);  // and sees to it that all heals by itself
};
const std::vector<StepFault>& step_faults();

struct OperationFault {
    const char* name;
    const char* operations;  // of the observer's words, those that it can strike
    bool before;             // it is drawn before the observer hears of the operation
    bool shared;             // on the shared file system only
    void (*set)(sim::Faults& faults);
};
const std::vector<OperationFault>& operation_faults();
bool strikes(const OperationFault& fault, const std::string& operation, const std::string& detail, bool before);

std::string to_text(const std::vector<Fault>& faults);
Result<std::vector<Fault>> parse_faults(const std::string& text);

}  // namespace cairn::testing
