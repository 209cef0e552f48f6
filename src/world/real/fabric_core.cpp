// FabricCore: completions, house-keeping, and cutting connections that hold what nobody will fetch.
#include "world/real/fabric_core.hpp"

#include <random>
#include <set>

namespace cairn {

namespace {

constexpr Nanos house_period = 50 * millisecond;   // while something is under way
constexpr Nanos activity_span = 200 * millisecond;  // how long after the last event that is
constexpr Nanos poll_pause = millisecond;
constexpr Nanos discard_wait = 5 * second;
constexpr Nanos peer_idle = 60 * second;
constexpr std::size_t peers_max = 16384;
constexpr std::size_t scrap_bytes = 64;
constexpr int batches_max = 64;  // of completions, in one turn of the loop

std::uint64_t draw_sender_id() {
    std::random_device entropy;
    return static_cast<std::uint64_t>(entropy()) << 32 | entropy();
}

}  // namespace

FabricCore::FabricCore(Loop& loop, const FabricSettings& settings, std::unique_ptr<FabricEndpoint> endpoint)
    : loop_(loop), settings_(settings), endpoint_(std::move(endpoint)), self_(endpoint_->self()),
      inbox_(loop, settings.inbox_messages), progressed_(loop), sender_id_(draw_sender_id()),
      reassembly_({settings.partial_bytes_sender, settings.partial_bytes, settings.partial_wait}) {}

Status FabricCore::start() {
    scrap_ = std::make_shared<BytesBuffer>(Bytes(scrap_bytes));
    const std::uint32_t count = settings_.message_buffers;
    const BufferPtr buffers = std::make_shared<BytesBuffer>(Bytes(std::size_t{count} * fabric_fragment_bytes));
    for (std::uint32_t i = 0; i < count; ++i) {
        Operation& operation = add_operation(Kind::message_in);
        operation.held = buffers;
        operation.tag = i;
        TRY(post_message_buffer(operation));
    }
    TRY_ASSIGN(watch_, loop_.watch_readable(endpoint_->wait_descriptor(), [this] { on_readable(); }));
    progress();
    return {};
}

void FabricCore::close() {
    if (closed_) return;
    closed_ = true;
    loop_.unwatch(watch_);
    loop_.cancel(house_timer_);
    loop_.cancel(poll_timer_);
    endpoint_.reset();  // from here on no memory is touched
    for (Operation& operation : operations_) {
        if (operation.kind != Kind::given_up) give_up(operation, Status(Code::cancelled, "the network was closed"));
    }
    operations_.clear();
    inbox_.close();
    progressed_.notify_all();
}

FabricCounters FabricCore::counters() const {
    FabricCounters counters = counters_;
    counters.messages_dropped += reassembly_.dropped();
    const Nanos now = loop_.now();
    for (const Operation& operation : operations_) {
        const bool is_out = operation.kind == Kind::message_out || operation.kind == Kind::payload_out;
        const bool is_overdue = is_out && operation.give_up_at != never && operation.give_up_at - settings_.cut_after < now;
        const bool is_withdrawn = operation.kind == Kind::payload_in && operation.give_up_at != never;
        if (is_overdue || is_withdrawn) ++counters.operations_held;
    }
    return counters;
}

FabricOperation& FabricCore::add_operation(Kind kind) {
    Operation& operation = operations_.emplace_back();
    operation.place = std::prev(operations_.end());
    operation.kind = kind;
    operation.context.operation = &operation;
    return operation;
}

void FabricCore::erase_operation(Operation& operation) { operations_.erase(operation.place); }

// The provider gave the operation back.
void FabricCore::finish(Operation& operation, Status status) {
    give_up(operation, std::move(status));
    erase_operation(operation);
}

// Whoever waits is told and the buffer let go of; the operation itself stays, in case its completion still comes.
void FabricCore::give_up(Operation& operation, Status status) {
    if (operation.kind == Kind::payload_in) {
        const auto posting = postings_.find(operation.tag);
        if (posting != postings_.end() && posting->second.operation == &operation) posting->second.operation = nullptr;
    }
    operation.kind = Kind::given_up;
    if (const FabricTransferPtr transfer = std::move(operation.transfer)) {
        --transfer->outstanding;
        if (transfer->status.ok()) transfer->status = std::move(status);
        transfer->changed.notify_all();
    }
    if (operation.peer) --operation.peer->operations;
    operation.peer.reset();
    operation.held.reset();
}

// Reads what is there. True when there was something. Leaves the descriptor ready to be slept on.
bool FabricCore::progress() {
    if (closed_) return false;
    bool any = false;
    fi_cq_tagged_entry entries[32];
    for (int batch = 0; batch < batches_max; ++batch) {
        const ssize_t count = fi_cq_read(endpoint_->completions(), entries, std::size(entries));
        if (count == -FI_EAVAIL) {
            read_error();
        } else if (count > 0) {
            for (ssize_t i = 0; i < count; ++i) completed(entries[i]);
        } else {
            if (count != -FI_EAGAIN) ++counters_.provider_errors;
            break;
        }
        any = true;
    }
    if (any) {
        may_be_unposted_ = true;
        progressed_.notify_all();
        arm_housekeeping();
    }
    if (!endpoint_->may_sleep()) arm_poll(any);
    return any;
}

void FabricCore::completed(const fi_cq_tagged_entry& entry) {
    if (!entry.op_context) return;
    Operation& operation = *static_cast<FabricContext*>(entry.op_context)->operation;
    switch (operation.kind) {
        case Kind::message_in:
            message_arrived(operation, entry.len);
            break;
        case Kind::payload_in:
            if (operation.transfer) operation.transfer->length = entry.len;
            finish(operation, Status());
            break;
        case Kind::peek:
            erase_operation(operation);
            discard(entry.tag);
            break;
        case Kind::discard:
            ++counters_.payloads_discarded;
            looking_ = false;
            erase_operation(operation);
            break;
        case Kind::message_out:
        case Kind::payload_out:
            finish(operation, Status());
            break;
        case Kind::given_up:
            erase_operation(operation);
            break;
    }
}

void FabricCore::read_error() {
    fi_cq_err_entry error{};
    if (fi_cq_readerr(endpoint_->completions(), &error, 0) <= 0 || !error.op_context) {
        ++counters_.provider_errors;  // not about any one operation
        return;
    }
    failed(*static_cast<FabricContext*>(error.op_context)->operation, error);
}

void FabricCore::failed(Operation& operation, const fi_cq_err_entry& error) {
    switch (operation.kind) {
        case Kind::message_in:
            ++counters_.messages_dropped;
            if (!post_message_buffer(operation).ok()) erase_operation(operation);
            break;
        case Kind::peek:
            looking_ = false;
            if (error.err != FI_ENOMSG) can_peek_ = false;
            erase_operation(operation);
            break;
        case Kind::discard:  // truncated: that was the purpose
            ++counters_.payloads_discarded;
            looking_ = false;
            erase_operation(operation);
            break;
        case Kind::payload_in:
            if (error.err == FI_ETRUNC) finish(operation, corrupt("a payload was longer than the buffer posted for it"));
            else if (error.err == FI_ECANCELED && operation.give_up_at != never) finish(operation, deadline_passed("withdrawn"));
            else finish(operation, fabric_status(Code::unavailable, "the sender of a payload was lost", error.err));
            break;
        case Kind::message_out:
        case Kind::payload_out: {
            const std::string what = "the connection to " + operation.peer->address + " was lost";
            finish(operation, fabric_status(Code::unavailable, what, error.err));
            break;
        }
        case Kind::given_up:
            erase_operation(operation);
            break;
    }
}

void FabricCore::on_readable() {
    active_until_ = loop_.now() + activity_span;
    may_be_unposted_ = true;
    progress();
    progressed_.notify_all();  // a connection may have come to be, which completes nothing
    arm_housekeeping();
}

void FabricCore::arm_poll(bool soon) {
    if (poll_timer_ != 0) return;
    poll_timer_ = loop_.at(loop_.now() + (soon ? 0 : poll_pause), [this] {
        poll_timer_ = 0;
        progress();
    });
}

void FabricCore::arm_housekeeping() {
    if (house_timer_ != 0) return;
    house_timer_ = loop_.at(loop_.now() + house_period, [this] {
        house_timer_ = 0;
        keep_house();
    });
}

bool FabricCore::is_busy() const noexcept {
    if (!reassembly_.empty()) return true;
    for (const Operation& operation : operations_)
        if (operation.kind != Kind::message_in && operation.kind != Kind::given_up) return true;
    return false;
}

void FabricCore::keep_house() {
    progress();
    const Nanos now = loop_.now();
    reassembly_.expire(now);
    cut_overdue(now);
    if (may_be_unposted_) look_for_unposted();
    if (peers_.size() > peers_max) forget_idle_peers();
    if (now < active_until_ || is_busy()) arm_housekeeping();
}

// Closes the connection to a peer and fails everything under way to it. The next send connects again.
void FabricCore::cut(FabricPeer& peer, std::string_view why) {
    if (peer.where == FI_ADDR_NOTAVAIL) return;
    ++counters_.connections_cut;
    const bool is_over = endpoint_->remove(peer.where);
    peer.where = FI_ADDR_NOTAVAIL;
    progress();
    for (Operation& operation : operations_) {
        if (operation.peer.get() != &peer) continue;
        if (is_over) give_up(operation, unavailable("the connection to " + peer.address + " was cut: " + std::string(why)));
        else operation.give_up_at = never;  // the provider has it until it says otherwise
    }
}

void FabricCore::cut_overdue(Nanos now) {
    std::set<FabricPeerPtr> stuck;
    bool is_posting_stuck = false;
    for (Operation& operation : operations_) {
        if (operation.give_up_at > now) continue;
        if (operation.kind == Kind::discard) {
            looking_ = false;
            give_up(operation, Status());
        } else if (operation.kind == Kind::payload_in) {
            is_posting_stuck = true;
            operation.give_up_at = now + settings_.cut_all_after;
        } else if (operation.peer) {
            stuck.insert(operation.peer);
        }
    }
    for (const FabricPeerPtr& peer : stuck) cut(*peer, "it took nothing by the deadline");
    if (!is_posting_stuck) return;
    // Whose payload half arrived is not known. Everybody asks again.
    const auto peers = peers_;
    for (const auto& [address, peer] : peers) cut(*peer, "a payload stopped half way");
}

void FabricCore::forget_idle_peers() {
    const Nanos now = loop_.now();
    std::erase_if(peers_, [&](const auto& entry) {
        FabricPeer& peer = *entry.second;
        if (peer.operations != 0 || now - peer.used < peer_idle) return false;
        if (peer.where != FI_ADDR_NOTAVAIL) (void)endpoint_->remove(peer.where);
        return true;
    });
}

// Postings come before payloads, so what lies in the provider unmatched was withdrawn or never wanted.
void FabricCore::look_for_unposted() {
    if (looking_ || !can_peek_) return;
    may_be_unposted_ = false;
    Operation& operation = add_operation(Kind::peek);
    fi_msg_tagged message{};
    message.addr = FI_ADDR_UNSPEC;
    message.ignore = endpoint_->tag_max();
    message.context = &operation.context;
    looking_ = true;
    const ssize_t error = fi_trecvmsg(endpoint_->endpoint(), &message, FI_PEEK);
    if (error != 0) {
        looking_ = false;
        can_peek_ = error == -FI_EAGAIN;
        erase_operation(operation);
        return;
    }
    progress();
}

// Receives a few bytes of it: that ends it for the sender too, where discarding would leave him waiting.
void FabricCore::discard(std::uint64_t tag) {
    looking_ = false;
    may_be_unposted_ = true;
    if (postings_.contains(tag)) return;
    Operation& operation = add_operation(Kind::discard);
    operation.give_up_at = loop_.now() + discard_wait;
    Result<void*> description = endpoint_->describe(scrap_);
    ssize_t error = -FI_ENOMEM;
    if (description.ok()) {
        error = fi_trecv(endpoint_->endpoint(), scrap_->data(), scrap_bytes, *description, FI_ADDR_UNSPEC, tag, 0,
                         &operation.context);
    }
    if (error != 0) {
        ++counters_.provider_errors;
        erase_operation(operation);
        return;
    }
    looking_ = true;
}

}  // namespace cairn
