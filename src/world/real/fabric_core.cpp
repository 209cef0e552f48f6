// FabricCore: completions, house-keeping, and cutting connections that hold what nobody will fetch.
#include "world/real/fabric_core.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace cairn {

namespace {

constexpr Nanos house_period = 50 * millisecond;    // while something is under way
constexpr Nanos activity_span = 200 * millisecond;  // how long after the last event that is
constexpr Nanos poll_pause = millisecond;
constexpr Nanos peer_idle = 60 * second;
constexpr std::size_t peers_max = 16384;
constexpr std::size_t lost_sends_max = 512;  // of the 2048 that ofi_rxm has room for
constexpr int close_tries = 1000;
constexpr int batches_max = 64;  // of completions, in one turn of the loop

// What others reach this endpoint by.
Address address_of(const FabricEndpoint& endpoint, const Beacon* beacon) {
    if (!beacon) return endpoint.self();
    CardsAddress address{beacon->id(), beacon->port(), {}};
    for (const HostCard& card : endpoint.plan().cards)
        address.cards.push_back({host_port(card.address, endpoint.port()), card.rate_mbps, card.address == endpoint.plan().usual});
    return print_cards_address(address);
}

}  // namespace

std::uint64_t draw_fabric_id() {
    std::random_device entropy;
    return static_cast<std::uint64_t>(entropy()) << 32 | entropy();
}

FabricCore::FabricCore(Loop& loop, const FabricSettings& settings, std::unique_ptr<FabricEndpoint> endpoint, std::unique_ptr<Beacon> beacon)
    : loop_(loop),
      settings_(settings),
      endpoint_(std::move(endpoint)),
      self_(address_of(*endpoint_, beacon.get())),
      inbox_(loop, settings.inbox_messages),
      progressed_(loop),
      sender_id_(draw_fabric_id()),
      reassembly_({settings.partial_bytes_sender, settings.partial_bytes, settings.partial_wait}),
      beacon_(std::move(beacon)),
      card_choice_(endpoint_->plan().why) {
    for (const HostCard& card : endpoint_->plan().cards) cards_.push_back({card.interface, card.rate_mbps, 0});
}

Status FabricCore::start() {
    scrap_ = std::make_shared<BytesBuffer>(Bytes(fabric_fragment_bytes));
    const std::uint32_t count = settings_.message_buffers;
    const BufferPtr buffers = std::make_shared<BytesBuffer>(Bytes(std::size_t{count} * fabric_fragment_bytes));
    for (std::uint32_t i = 0; i < count; ++i) {
        Operation& operation = add_operation(Kind::message_in);
        operation.held = buffers;
        operation.tag = i;
        TRY(post_message_buffer(operation));
    }
    TRY(watch());
    catch_unposted();
    greet();
    progress();
    return {};
}

Status FabricCore::watch() {
    for (const FabricSide& side : endpoint_->sides()) {
        TRY_ASSIGN(const Loop::WatchId id, loop_.watch_readable(side.wait_descriptor, [this] { on_readable(); }));
        watches_.push_back(id);
    }
    return {};
}

void FabricCore::unwatch() {
    for (const Loop::WatchId id : watches_) loop_.unwatch(id);
    watches_.clear();
}

void FabricCore::close() {
    if (closed_) return;
    closing_ = true;
    unwatch();
    loop_.cancel(house_timer_);
    loop_.cancel(poll_timer_);
    hails_.clear();
    beacon_.reset();
    withdraw_all();
    closed_ = true;
    endpoint_.reset();  // from here on no memory is touched
    for (Operation& operation : operations_) {
        if (operation.kind != Kind::given_up) give_up(operation, Status(Code::cancelled, "the network was closed"));
    }
    operations_.clear();
    inbox_.close();
    progressed_.notify_all();
}

// So that the provider is reading nothing while it is closed.
void FabricCore::withdraw_all() {
    const auto is_receiving = [](const Operation& operation) {
        return operation.kind == Kind::payload_in || operation.kind == Kind::unposted_in;
    };
    catchers_.clear();
    for (Operation& operation : operations_)
        if (is_receiving(operation)) (void)fi_cancel(&endpoint_->in()->fid, &operation.context);
    progress();
    if (std::none_of(operations_.begin(), operations_.end(), is_receiving)) return;
    endpoint_->end_senders();
    for (int tries = 0; tries < close_tries && std::any_of(operations_.begin(), operations_.end(), is_receiving);
         ++tries)
        progress();
}

FabricCounters FabricCore::counters() const {
    FabricCounters counters = counters_;
    counters.messages_dropped += reassembly_.dropped();
    const Nanos now = loop_.now();
    for (const Operation& operation : operations_) {
        const bool is_out = operation.kind == Kind::message_out || operation.kind == Kind::payload_out;
        const bool is_overdue =
            is_out && operation.give_up_at != never && operation.give_up_at - settings_.cut_after < now;
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
    if (operation.peer && operation.peer->ways) operation.peer->ways->moved = loop_.now();
    operation.peer.reset();
    operation.held.reset();
}

// Reads what is there. True when there was something. Leaves the descriptors ready to be slept on.
bool FabricCore::progress() {
    if (closed_) return false;
    bool any = false;
    for (const FabricSide& side : endpoint_->sides()) any |= read_queue(side.completions.get());
    if (any) {
        progressed_.notify_all();
        arm_housekeeping();
    }
    if (!endpoint_->may_sleep()) arm_poll(any);
    return any;
}

bool FabricCore::read_queue(fid_cq* queue) {
    bool any = false;
    fi_cq_tagged_entry entries[32];
    for (int batch = 0; batch < batches_max; ++batch) {
        const ssize_t count = fi_cq_read(queue, entries, std::size(entries));
        if (count == -FI_EAVAIL) {
            read_error(queue);
        } else if (count > 0) {
            for (ssize_t i = 0; i < count; ++i) completed(entries[i]);
        } else {
            if (count != -FI_EAGAIN) ++counters_.provider_errors;
            break;
        }
        any = true;
    }
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
        case Kind::unposted_in:
            caught(operation, false);
            break;
        case Kind::unmatched:
            ++counters_.payloads_discarded;
            erase_operation(operation);
            drop_unmatched();
            break;
        case Kind::message_out:
        case Kind::payload_out:
            finish(operation, Status());
            break;
        case Kind::given_up:
            returned(operation);
            break;
    }
}

void FabricCore::read_error(fid_cq* queue) {
    fi_cq_err_entry error{};
    if (fi_cq_readerr(queue, &error, 0) <= 0 || !error.op_context) {
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
        case Kind::unposted_in:
            caught(operation, error.err == FI_ECANCELED);  // else truncated: that is the purpose
            break;
        case Kind::unmatched:
            nothing_unmatched(operation);
            break;
        case Kind::payload_in:
            if (closing_)
                finish(operation, Status(Code::cancelled, "the network was closed"));
            else if (error.err == FI_ETRUNC)
                finish(operation, corrupt("a payload was longer than the buffer posted for it"));
            else if (error.err == FI_ECANCELED && operation.give_up_at != never)
                finish(operation, deadline_passed("withdrawn"));
            else
                finish(operation, fabric_status(Code::unavailable, "the sender of a payload was lost", error.err));
            break;
        case Kind::message_out:
        case Kind::payload_out: {
            const std::string what = "the connection to " + operation.peer->address + " was lost";
            if (operation.peer->ways) operation.peer->ways->is_doubted = true;
            finish(operation, fabric_status(Code::unavailable, what, error.err));
            break;
        }
        case Kind::given_up:
            returned(operation);
            break;
    }
}

// A send that was given up came back after all.
void FabricCore::returned(Operation& operation) {
    --lost_sends_;
    erase_operation(operation);
}

void FabricCore::on_readable() {
    active_until_ = loop_.now() + activity_span;
    progress();
    progressed_.notify_all();  // a connection may have come to be, which completes nothing
    arm_housekeeping();
}

void FabricCore::arm_poll(bool soon) {
    if (poll_timer_ != 0 || closing_) return;
    poll_timer_ = loop_.at(loop_.now() + (soon ? 0 : poll_pause), [this] {
        poll_timer_ = 0;
        progress();
    });
}

void FabricCore::arm_housekeeping() {
    if (house_timer_ != 0 || closing_) return;
    house_timer_ = loop_.at(loop_.now() + house_period, [this] {
        house_timer_ = 0;
        keep_house();
    });
}

bool FabricCore::is_busy() const noexcept {
    if (!reassembly_.empty() || !is_greeted_) return true;
    for (const Operation& operation : operations_)
        if (operation.kind == Kind::message_out || operation.kind == Kind::payload_out ||
            operation.kind == Kind::payload_in)
            return true;
    return false;
}

void FabricCore::keep_house() {
    progress();
    const Nanos now = loop_.now();
    reassembly_.expire(now);
    cut_overdue(now);
    if (!is_greeted_) greet();
    if (peers_with_ways_ > 0) doubt_ways();
    if (lost_sends_ > lost_sends_max) renew_out();
    if (peers_.size() > peers_max) forget_idle_peers();
    if (now < active_until_ || is_busy()) arm_housekeeping();
}

// Closes the connection to a peer and fails everything under way to it. The next send connects again.
void FabricCore::cut(FabricPeer& peer, std::string_view why) {
    if (peer.where == FI_ADDR_NOTAVAIL) return;
    ++counters_.connections_cut;
    const bool is_over = endpoint_->remove(peer.where);
    peer.where = FI_ADDR_NOTAVAIL;
    if (peer.ways) peer.ways->is_doubted = true;
    progress();
    for (Operation& operation : operations_) {
        if (operation.peer.get() != &peer) continue;
        if (!is_over) {
            operation.give_up_at = never;  // the provider has it until it says otherwise
            continue;
        }
        give_up(operation, unavailable("the connection to " + peer.address + " was cut: " + std::string(why)));
        ++lost_sends_;
    }
}

// tcp sends payloads that were asked for before any message: one that waits behind them says nothing about the peer.
bool FabricCore::sends_data(const FabricPeer* peer, Nanos now) const {
    return std::any_of(operations_.begin(), operations_.end(), [&](const Operation& operation) {
        return operation.kind == Kind::payload_out && operation.peer.get() == peer && operation.give_up_at > now && operation.give_up_at != never;
    });
}

void FabricCore::cut_overdue(Nanos now) {
    std::set<FabricPeerPtr> stuck;
    for (Operation& operation : operations_) {
        if (operation.give_up_at > now) continue;
        if (operation.kind == Kind::payload_in) {
            endpoint_->probe_senders();
            operation.give_up_at = now + settings_.probe_after;
        } else if (operation.peer && !(operation.kind == Kind::message_out && sends_data(operation.peer.get(), now))) {
            stuck.insert(operation.peer);
        }
    }
    for (const FabricPeerPtr& peer : stuck) cut(*peer, "it took nothing by the deadline");
}

void FabricCore::forget_idle_peers() {
    const Nanos now = loop_.now();
    std::erase_if(peers_, [&](const auto& entry) {
        FabricPeer& peer = *entry.second;
        if (peer.operations != 0 || now - peer.used < peer_idle) return false;
        if (peer.where != FI_ADDR_NOTAVAIL) (void)endpoint_->remove(peer.where);
        peer.where = FI_ADDR_NOTAVAIL;
        if (peer.ways) --peers_with_ways_;
        return true;
    });
}

void FabricCore::greet() {
    const ssize_t error = endpoint_->greet();
    is_greeted_ = error != -FI_EAGAIN;
    if (error != 0 && error != -FI_EAGAIN) ++counters_.provider_errors;
    arm_housekeeping();
}

// ofi_rxm keeps a place for each send that was given up; before they run out, it gets a new endpoint to send from.
void FabricCore::renew_out() {
    progress();
    unwatch();
    const Status opened = endpoint_->reopen_out();
    const Status watched = watch();
    if (!opened.ok() || !watched.ok()) {
        ++counters_.provider_errors;  // tried again at the next turn of the house-keeping
        return;
    }
    ++counters_.connections_cut;
    for (const auto& [address, peer] : peers_) peer->where = FI_ADDR_NOTAVAIL;
    for (auto place = operations_.begin(); place != operations_.end();) {
        Operation& operation = *place++;
        const bool is_out = operation.kind == Kind::message_out || operation.kind == Kind::payload_out;
        if (is_out) give_up(operation, unavailable("the connection to " + operation.peer->address + " was cut"));
        if (operation.kind == Kind::given_up) erase_operation(operation);
    }
    lost_sends_ = 0;
    greet();
}

// Postings come before payloads, so a payload that matches none was withdrawn or never wanted. In the provider it would
// wait for ever, and its sender with it. So the last receives in line match anything, and take a few bytes of it: that
// ends it for the sender too.
void FabricCore::catch_unposted() {
    Result<void*> description = endpoint_->describe(scrap_);
    while (catchers_.size() < catchers && description.ok()) {
        Operation& operation = add_operation(Kind::unposted_in);
        operation.held = scrap_;
        const ssize_t error = fi_trecv(endpoint_->in(), scrap_->data(), scrap_->size(), *description, FI_ADDR_UNSPEC, 0,
                                       endpoint_->tag_max(), &operation.context);
        if (error != 0) {
            ++counters_.provider_errors;
            erase_operation(operation);
            return;
        }
        catchers_.push_back(&operation);
    }
}

// To be followed by line_up_catchers(), once the new posting stands in line.
void FabricCore::release_catchers() {
    for (Operation* const operation : catchers_) (void)fi_cancel(&endpoint_->in()->fid, &operation->context);
    catchers_.clear();
}

// More unposted payloads than catchers: those left may be older than their connection. Reading them over the next one
// would read memory that its owner has given up on, so they are dropped unread, and their senders left to their
// deadlines.
void FabricCore::line_up_catchers() {
    if (is_dropping_ || closing_) return;
    is_dropping_ = true;
    drop_unmatched();
}

void FabricCore::drop_unmatched() {
    Operation& operation = add_operation(Kind::unmatched);
    fi_msg_tagged message{};
    message.addr = FI_ADDR_UNSPEC;
    message.ignore = endpoint_->tag_max();
    message.context = &operation.context;
    if (fi_trecvmsg(endpoint_->in(), &message, FI_PEEK | FI_DISCARD) != 0)
        nothing_unmatched(operation);  // can not look
}

void FabricCore::nothing_unmatched(Operation& operation) {
    erase_operation(operation);
    is_dropping_ = false;
    if (!closing_) catch_unposted();
}

void FabricCore::caught(Operation& operation, bool cancelled) {
    const bool stood_in_line = std::erase(catchers_, &operation) != 0;
    if (!cancelled) ++counters_.payloads_discarded;
    erase_operation(operation);
    if (stood_in_line) line_up_catchers();  // not released by a posting, which put others in line
}

}  // namespace cairn
