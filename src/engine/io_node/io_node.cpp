#include "engine/io_node/io_node.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "catalog/record.hpp"
#include "catalog/removal.hpp"
#include "format/limits.hpp"
#include "format/roster.hpp"

namespace cairn::engine {

namespace {
constexpr Nanos look_again = second;     // for the roster of one job
constexpr std::uint32_t looking_max = 8; // at the same time
constexpr Nanos forget_pause = 30 * second;
}  // namespace

IoNode::IoNode(Common& c, Jobs& jobs) : Role(c), jobs_(jobs) {}

void IoNode::serve_as(std::string name) {
    CAIRN_CHECK(name_.empty() && !name.empty());
    name_ = std::move(name);
    gate.spawn(forget_ended_jobs());
}

void IoNode::on_stranger(message::Message message) {
    if (name_.empty() || common.stopping || looking_ >= looking_max) return;
    const Id128 incarnation = message.key.incarnation;
    const auto looked = looked_for_.find(incarnation);
    if (looked != looked_for_.end() && world.clock.now() < looked->second + look_again) return;
    if (looked == looked_for_.end() && looked_for_.size() >= settings.limits.strangers)
        looked_for_.erase(std::min_element(looked_for_.begin(), looked_for_.end(), [](const auto& a, const auto& b) { return a.second < b.second; }));
    looked_for_[incarnation] = world.clock.now();
    gate.spawn(learn(std::move(message)));
}

Task<void> IoNode::learn(message::Message message) {
    const Id128 incarnation = message.key.incarnation;
    ++looking_;
    Result<Bytes> bytes = co_await read_record(world, layout.job_roster(incarnation), FrameKind::roster, roster_bytes_max, world.clock.in(settings.io_wait));
    --looking_;
    if (!bytes.ok() || common.stopping || jobs_.known().count(incarnation)) co_return;
    Result<Roster> roster = decode_roster(*bytes);
    if (!roster.ok() || roster->incarnation != incarnation || roster->secret != message.secret) co_return;
    const auto self = std::find_if(roster->members.begin(), roster->members.end(),
                                   [&](const Member& member) { return member.node == name_ && member.ranks.empty(); });
    if (self == roster->members.end()) co_return;
    std::map<Nanos, Id128> guests;  // by when they last spoke
    for (const auto& [known, job] : jobs_.known())
        if (!job->has_ranks(job->self)) guests.emplace(job->last_heard_of_any(), known);
    if (guests.size() >= settings.limits.guests && !jobs_.forget(guests.begin()->second)) co_return;
    log_info("io-node-joined", {{"name", roster->name}, {"incarnation", incarnation}, {"ranks", roster->ranks}});
    self->address = world.network.self();
    const auto index = static_cast<NodeIndex>(self - roster->members.begin());
    jobs_.join(incarnation, std::make_shared<Job>(world, layout.persistent, std::make_shared<const Roster>(std::move(roster).value()), index));
    jobs_.handle(std::move(message));
}

Task<void> IoNode::forget_ended_jobs() {
    while (!common.stopping) {
        co_await world.clock.sleep(forget_pause);
        std::vector<Id128> guests;
        for (const auto& [incarnation, job] : jobs_.known())
            if (!job->has_ranks(job->self)) guests.push_back(incarnation);
        for (const Id128 incarnation : guests) {
            const Result<bool> on_record = co_await job_on_record(world, layout, incarnation, world.clock.in(settings.io_wait));
            if (on_record.ok() && !*on_record && !common.stopping) jobs_.forget(incarnation);
        }
    }
}

}  // namespace cairn::engine
