// Messages and payloads between simulated processes.
#include "world/sim/network.hpp"

#include "world/sim/machine.hpp"

namespace cairn::sim {

namespace {
constexpr std::size_t inbox_messages_max = 1 << 16;

void damage(Runs& runs, Prng& prng) {
    Content content;
    content.write(0, runs);
    if (content.size() > 0) content.flip_bit(prng.below(content.size()), static_cast<unsigned>(prng.below(8)));
    runs = content.read(0, content.size());
}

Nanos up_to(Prng& prng, Nanos span) { return static_cast<Nanos>(prng.below(static_cast<std::uint64_t>(span) + 1)); }
Nanos late_by(const Faults& faults, Prng& prng) { return faults.message_delay_min + up_to(prng, faults.message_delay_max - faults.message_delay_min); }
}  // namespace

SimNetwork::SimNetwork(Process& process, Clock& clock)
    : process_(process), sim_(process.simulation()), clock_(clock), inbox_(clock, inbox_messages_max) {}

// `left`: when the last byte has left the sender.
Nanos SimNetwork::arrival(Process& to, std::uint64_t bytes, Nanos& left) {
    const Nanos later = latency();
    left = sim_.now();
    // Of a machine's network messages are too small a part to wait for each other.
    if (&to.node() == &process_.node() || sim_.machine()) return left + later;
    const Model& model = sim_.model();
    left = process_.node().nic_out.pass(sim_.now(), bytes, model.nic_rate);
    return std::max(left + later, to.node().nic_in.pass(sim_.now() + later, bytes, model.nic_rate));
}

Nanos SimNetwork::latency() {
    const Nanos span = sim_.model().network_latency;
    return span + up_to(sim_.fault_prng(), span);
}

bool SimNetwork::cut_off(const Process* to) {
    return to == nullptr || !to->alive() || sim_.is_blocked(process_.node().id(), const_cast<Process*>(to)->node().id());
}

void SimNetwork::deliver_later(Process& to, Bytes message, Nanos when) {
    auto carried = std::make_shared<Bytes>(std::move(message));
    const std::uint64_t under_way = sim_.take_on({to.address(), carried, 0, 0});
    sim_.schedule(sim_.machines(), when, "message", [this, &to, carried, under_way] {
        sim_.arrived(under_way);
        if (to.alive()) (void)to.network().inbox_.try_send(std::move(*carried));
    });
}

Task<Status> SimNetwork::send(Address to, Bytes message, Nanos deadline) {
    if (message.size() > message_bytes_max) co_return invalid_argument("a message of " + std::to_string(message.size()) + " bytes is too long");
    const Faults& faults = sim_.faults();
    Prng& prng = sim_.fault_prng();
    Process* peer = sim_.find(to);
    Nanos left = sim_.now();
    sim_.note_before(process_, "send", to);
    const bool fails = sim_.strikes(&Faults::send_error);
    sim_.note(process_, "send", to);
    if (!cut_off(peer)) {
        const Nanos arrives = arrival(*peer, message.size(), left);
        const auto delay = [&] { return sim_.strikes(&Faults::message_delay) ? late_by(faults, prng) : 0; };
        if (sim_.strikes(&Faults::message_repeat)) deliver_later(*peer, message, arrives + delay() + up_to(prng, millisecond));
        const bool lost = sim_.strikes(&Faults::message_loss) || (fails && prng.chance(1 - faults.error_done));
        if (!lost) deliver_later(*peer, std::move(message), arrives + delay());
    }
    const Nanos takes = left + microsecond - sim_.now();
    const bool late = clock_.in(takes) > deadline;
    co_await clock_.sleep_until(std::min(deadline, clock_.in(takes)));
    if (fails) co_return unavailable(to + ": the message could not be sent");
    if (late) co_return deadline_passed(to + ": the message was not sent in time");
    co_return Status();
}

Status SimNetwork::post_payload(std::uint64_t tag, Slice into) {
    if (postings_.count(tag)) return invalid_argument("payload tag " + std::to_string(tag) + " is posted already");
    auto posting = std::make_shared<Posting>(clock_);
    posting->into = std::move(into);
    postings_.emplace(tag, std::move(posting));
    return {};
}

void SimNetwork::withdraw(std::uint64_t tag) {
    const auto it = postings_.find(tag);
    if (it == postings_.end()) return;
    it->second->withdrawn = true;
    if (it->second->transfers == 0) postings_.erase(it);
}

Task<Result<std::uint64_t>> SimNetwork::wait_payload(std::uint64_t tag, Nanos deadline) {
    const auto it = postings_.find(tag);
    if (it == postings_.end() || it->second->withdrawn)
        co_return not_found("payload tag " + std::to_string(tag) + " is not posted");
    struct Withdraw {  // however this wait ends
        SimNetwork& network;
        std::uint64_t tag;
        ~Withdraw() { network.withdraw(tag); }
    } withdraw_at_end{*this, tag};
    const std::shared_ptr<Posting> posting = it->second;
    while (!posting->done) {
        if (clock_.now() >= deadline) co_return deadline_passed("no payload came in time");
        co_await posting->changed.wait(deadline);
    }
    if (!posting->status.ok()) co_return posting->status;
    co_return posting->length;
}

// What arrived under `tag`; null: nothing after all.
void SimNetwork::take(std::uint64_t tag, const Runs* runs) {
    const auto it = postings_.find(tag);
    if (it == postings_.end()) return;
    const std::shared_ptr<Posting> posting = it->second;
    if (runs != nullptr && !posting->done) {
        const std::uint64_t length = length_of(*runs);
        if (length > posting->into.length)
            posting->status = Status(Code::io_error, "a payload of " + std::to_string(length) + " bytes came for a buffer of " +
                                                         std::to_string(posting->into.length));
        // One that was withdrawn meanwhile may be written to still: its buffer is in quarantine.
        else if (!posting->withdrawn || sim_.fault_prng().chance(0.5))
            put(posting->into, *runs);
        posting->length = length;
        posting->done = true;
        posting->changed.notify_all();
    }
    if (posting->withdrawn && posting->transfers == 0) postings_.erase(tag);
}

void SimNetwork::arrive(const std::shared_ptr<Transfer>& transfer, Process& to, std::uint64_t tag) {
    Prng& prng = sim_.fault_prng();
    SimNetwork& receiver = to.network();
    if (const auto it = receiver.postings_.find(tag); transfer->matched && it != receiver.postings_.end()) it->second->transfers--;
    const bool from_the_dead = !process_.alive();
    const bool comes = to.alive() && !(from_the_dead && (!transfer->captured || prng.chance(0.5)));
    if (comes) {
        Runs runs = transfer->captured ? *transfer->captured : runs_of(transfer->data);
        if (sim_.strikes(&Faults::payload_damage)) damage(runs, prng);
        receiver.take(tag, &runs);
    } else {
        receiver.take(tag, nullptr);
        if (!from_the_dead) return;  // the sender learns it from its deadline
    }
    transfer->done = true;
    transfer->changed.notify_all();
}

void SimNetwork::begin_transfer(const std::shared_ptr<Transfer>& transfer, const Address& to, std::uint64_t tag, Nanos deadline) {
    const Faults& faults = sim_.faults();
    Prng& prng = sim_.fault_prng();
    Process* peer = sim_.find(to);
    sim_.note(process_, "payload", to);
    if (prng.chance(0.5)) transfer->captured = runs_of(transfer->data);
    if (cut_off(peer) || sim_.strikes(&Faults::payload_loss)) {
        if (cut_off(peer) && prng.chance(faults.peer_loss_told)) {
            transfer->status = unavailable(to + ": the peer is gone");
            transfer->done = true;
            return;
        }
        // The transport keeps trying, and the buffer, for a while.
        if (deadline == never) return;
        const Nanos lets_go = sim_.now() + std::max<Nanos>(0, deadline - clock_.now()) + up_to(prng, second);
        sim_.schedule(sim_.machines(), lets_go, "payload lost", [transfer] {});
        return;
    }
    SimNetwork& receiver = peer->network();
    if (const auto it = receiver.postings_.find(tag); it != receiver.postings_.end()) {
        it->second->transfers++;
        transfer->matched = true;
    }
    const Nanos delay = sim_.strikes(&Faults::payload_delay) ? late_by(faults, prng) : 0;
    const std::uint64_t under_way = sim_.take_on({to, nullptr, tag, transfer->data.length});
    const auto arrive_at = [this, transfer, peer, tag, under_way](Nanos when) {
        sim_.schedule(sim_.machines(), when, "payload", [this, transfer, peer, tag, under_way] {
            sim_.arrived(under_way);
            arrive(transfer, *peer, tag);
        });
    };
    if (sim_.machine() && &peer->node() != &process_.node()) {
        const Nanos later = latency() + delay;
        sim_.machine()->send(process_.node().id(), peer->node().id(), transfer->data.length,
                             [this, arrive_at, later] { arrive_at(sim_.now() + later); });
        return;
    }
    Nanos left = 0;
    const Nanos arrives = arrival(*peer, transfer->data.length, left);
    arrive_at(arrives + delay);
}

Task<Status> SimNetwork::send_payload(Address to, std::uint64_t tag, Slice data, Nanos deadline) {
    auto transfer = std::make_shared<Transfer>(clock_);
    transfer->data = std::move(data);
    begin_transfer(transfer, to, tag, deadline);
    while (!transfer->done) {
        if (clock_.now() >= deadline) co_return deadline_passed(to + ": the payload was not taken in time");
        co_await transfer->changed.wait(deadline);
    }
    co_return transfer->status;
}

}  // namespace cairn::sim
