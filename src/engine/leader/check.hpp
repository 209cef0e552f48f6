// Check: what the coordinator's message asks for is held against this job and this node before it is believed. The decoder (format/message.cpp)
// knows only the message: numbers that fit each other, but not whether there is such a node, or room for such a block.
#pragma once

#include "engine/job.hpp"
#include "engine/settings.hpp"
#include "model/space.hpp"

namespace cairn::engine {

Status check_lead(const Job& job, const message::Lead& lead, std::uint64_t buffer_bytes, Placement placement);
// `images`: what is known of those of the attempt.
Status check_replacement(const Job& job, const message::Replace& replace, const SpacePolicy& space, const std::map<Rank, ImageInfo>& images);
Status check_work(const Job& job, const std::vector<message::Work>& work, const SpacePolicy& space);

}  // namespace cairn::engine
