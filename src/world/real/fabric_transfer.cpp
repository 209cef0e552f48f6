// FabricCore: messages and payloads, out and in.
#include <algorithm>

#include "world/real/fabric_core.hpp"

namespace cairn {

namespace {

constexpr std::size_t fragments_under_way = 32;  // of one message
constexpr std::uint64_t sends_at_once = 64;
constexpr Nanos first_pause =
    200 * microsecond;  // between tries, while the provider refuses: connecting, or its queue is full
constexpr Nanos last_pause = 20 * millisecond;

}  // namespace

Result<FabricPeerPtr> FabricCore::find_peer(const Address& address) {
    const auto known = peers_.find(address);
    if (known != peers_.end()) return known->second;
    auto peer = std::make_shared<FabricPeer>();
    peer->address = address;
    if (is_cards_address(address)) {
        TRY(find_ways(*peer));
        ++peers_with_ways_;
    } else {
        TRY_ASSIGN(peer->where, endpoint_->insert(address));
        peer->over = card_to(address);
    }
    peer->used = loop_.now();
    peers_.emplace(address, peer);
    return peer;
}

// Zero: the provider has it. -FI_EAGAIN: later. The operation exists only from here to its completion.
ssize_t FabricCore::try_send(const FabricSend& request) {
    FabricPeer& peer = *request.peer;
    peer.used = loop_.now();
    if (peer.ways && !has_way(request.peer)) return -FI_EAGAIN;
    if (peer.where == FI_ADDR_NOTAVAIL) {  // it was cut, or has a new way
        Result<fi_addr_t> where = endpoint_->insert(place_of(peer));
        if (!where.ok()) return -FI_EINVAL;
        peer.where = *where;
    }
    Operation& operation = add_operation(request.kind);
    operation.held = request.data.buffer;
    operation.header = request.header;
    operation.give_up_at = request.give_up_at;
    const ssize_t error =
        request.kind == Kind::payload_out ? send_whole(request, operation) : send_fragment(request, operation);
    if (error != 0) {
        if (peer.ways && peer.ways->refused == 0) peer.ways->refused = loop_.now();
        erase_operation(operation);
        return error;
    }
    if (peer.ways) began_over_way(peer);
    operation.transfer = request.transfer;
    ++operation.transfer->outstanding;
    operation.peer = request.peer;
    ++peer.operations;
    arm_housekeeping();
    return 0;
}

ssize_t FabricCore::send_whole(const FabricSend& request, Operation& operation) {
    Result<void*> description = endpoint_->describe(request.data.buffer);
    if (!description.ok()) return -FI_ENOMEM;
    return fi_tsend(endpoint_->out(), request.data.data(), request.data.length, *description, request.peer->where,
                    request.tag, &operation.context);
}

ssize_t FabricCore::send_fragment(const FabricSend& request, Operation& operation) {
    if (endpoint_->registers()) {  // one registered piece instead of two that are not
        Bytes joined(fabric_header_bytes + request.data.length);
        std::memcpy(joined.data(), operation.header.data(), fabric_header_bytes);
        if (request.data.length != 0)
            std::memcpy(joined.data() + fabric_header_bytes, request.data.data(), request.data.length);
        operation.held = std::make_shared<BytesBuffer>(std::move(joined));
        Result<void*> description = endpoint_->describe(operation.held);
        if (!description.ok()) return -FI_ENOMEM;
        return fi_send(endpoint_->out(), operation.held->data(), operation.held->size(), *description,
                       request.peer->where, &operation.context);
    }
    const iovec pieces[2] = {{operation.header.data(), operation.header.size()},
                             {request.data.data(), request.data.length}};
    return fi_sendv(endpoint_->out(), pieces, nullptr, request.data.length == 0 ? 1 : 2, request.peer->where,
                    &operation.context);
}

// Zero: the provider has it, now. Only the rest is worth a coroutine; and one that ends without having waited deepens
// the stack where the compiler makes no tail calls.
ssize_t FabricCore::try_send_again(const FabricSend& request) {
    const ssize_t error = try_send(request);
    return error == -FI_EAGAIN && progress() ? try_send(request) : error;
}

// Until the provider takes what it just refused. Progress elsewhere wakes this up; so does time, ever more slowly.
Task<Status> FabricCore::send_patiently(Ptr core, FabricSend request, Nanos deadline) {
    Nanos pause = first_pause;
    for (ssize_t error = -FI_EAGAIN; error != 0; error = core->try_send_again(request)) {
        if (error != -FI_EAGAIN)
            co_return fabric_status(Code::unavailable, "can not send to " + request.peer->address, error);
        const Nanos now = core->loop_.now();
        if (now >= deadline)
            co_return deadline_passed("could not begin sending to " + request.peer->address + " in time");
        const Nanos until = std::min(deadline, now + pause);
        const bool notified = co_await core->progressed_.wait(until);
        if (core->closed_) co_return Status(Code::cancelled, "the network was closed");
        if (!notified) pause = std::min(2 * pause, last_pause);
    }
    co_return Status();
}

// True when there is something to wait for.
bool FabricCore::is_outstanding(const FabricTransfer& transfer, std::size_t at_most) {
    if (transfer.outstanding > at_most && transfer.status.ok()) progress();
    return transfer.outstanding > at_most && transfer.status.ok();
}

// Until at most so many are under way, one failed, or the deadline.
Task<void> FabricCore::wait_outstanding(Ptr core, FabricTransferPtr transfer, std::size_t at_most, Nanos deadline) {
    do {
        if (core->loop_.now() >= deadline) co_return;
        co_await transfer->changed.wait(deadline);
    } while (core->is_outstanding(*transfer, at_most));
}

Task<Status> FabricCore::send_message(Ptr core, Address to, Bytes message, Nanos deadline) {
    const std::uint64_t total = message.size();
    if (core->closed_) co_return Status(Code::cancelled, "the network was closed");
    if (total > Network::message_bytes_max) {
        co_return invalid_argument("a message of " + std::to_string(total) + " bytes; the most is " +
                                   std::to_string(Network::message_bytes_max));
    }
    ++core->counters_.messages_sent;
    if (to == core->self_) {
        core->deliver(std::move(message));
        co_return Status();
    }
    CO_TRY_ASSIGN(const FabricPeerPtr peer, core->find_peer(to));
    FabricSend request;
    request.peer = peer;
    request.transfer = std::make_shared<FabricTransfer>(core->loop_);
    request.give_up_at = deadline >= never - core->settings_.cut_after ? never : deadline + core->settings_.cut_after;
    const Slice whole = Slice::of(std::move(message));
    const FabricTransferPtr transfer = request.transfer;
    FabricFragment fragment{core->sender_id_, ++core->last_message_, total, 0, {}};
    do {
        const std::uint64_t room = fabric_fragment_bytes - fabric_header_bytes;
        request.data = whole.part(fragment.offset, std::min(room, total - fragment.offset));
        request.header = encode_fabric_header(fragment);
        fragment.offset += request.data.length;
        if (core->try_send_again(request) != 0) {
            Task<Status> sending = send_patiently(core, request, deadline);
            const Status sent = co_await sending;
            if (!sent.ok()) co_return sent;
        }
        const std::size_t at_most = fragment.offset < total ? fragments_under_way - 1 : 0;
        if (core->is_outstanding(*transfer, at_most)) {
            Task<void> waiting = wait_outstanding(core, transfer, at_most, deadline);
            co_await waiting;
        }
        if (++core->sends_ % sends_at_once == 0) co_await core->loop_.sleep(0);  // let others have their turn
        if (core->closed_) co_return Status(Code::cancelled, "the network was closed");
        if (!transfer->status.ok()) co_return transfer->status;
        if (transfer->outstanding > at_most)
            co_return deadline_passed("could not send all of a message to " + to + " in time");
    } while (fragment.offset < total);
    co_return Status();
}

Status FabricCore::check_payload(std::uint64_t tag, const Slice& slice) const {
    if (closed_) return {Code::cancelled, "the network was closed"};
    if (!slice.buffer || (slice.length != 0 && !slice.buffer->data()))
        return invalid_argument("a payload without memory");
    if (tag > endpoint_->tag_max()) {
        return invalid_argument("payload tag " + std::to_string(tag) + "; this fabric's go up to " +
                                std::to_string(endpoint_->tag_max()));
    }
    if (slice.length > endpoint_->payload_bytes_max()) {
        return invalid_argument("a payload of " + std::to_string(slice.length) + " bytes; this fabric takes " +
                                std::to_string(endpoint_->payload_bytes_max()) + " (set smaller buffers)");
    }
    return {};
}

Task<Status> FabricCore::send_payload(Ptr core, Address to, std::uint64_t tag, Slice data, Nanos deadline) {
    CO_TRY(core->check_payload(tag, data));
    if (to == core->self_) {
        core->payload_to_self(tag, data);
        co_return Status();
    }
    CO_TRY_ASSIGN(const FabricPeerPtr peer, core->find_peer(to));
    FabricSend request;
    request.kind = Kind::payload_out;
    request.peer = peer;
    request.transfer = std::make_shared<FabricTransfer>(core->loop_);
    request.data = std::move(data);
    request.tag = tag;
    request.give_up_at = deadline >= never - core->settings_.cut_after ? never : deadline + core->settings_.cut_after;
    const FabricTransferPtr transfer = request.transfer;
    if (core->try_send_again(request) != 0) {
        Task<Status> sending = send_patiently(core, std::move(request), deadline);
        const Status sent = co_await sending;
        if (!sent.ok()) co_return sent;
    }
    if (core->is_outstanding(*transfer, 0)) {
        Task<void> waiting = wait_outstanding(core, transfer, 0, deadline);
        co_await waiting;
    }
    if (++core->sends_ % sends_at_once == 0) co_await core->loop_.sleep(0);
    if (transfer->outstanding != 0) co_return deadline_passed(to + " did not take a payload in time");
    co_return transfer->status;
}

Status FabricCore::post_payload(std::uint64_t tag, Slice into) {
    TRY(check_payload(tag, into));
    if (postings_.contains(tag))
        return {Code::already_exists, "payload tag " + std::to_string(tag) + " is posted already"};
    TRY_ASSIGN(void* const description, endpoint_->describe(into.buffer));
    Operation& operation = add_operation(Kind::payload_in);
    operation.held = into.buffer;
    operation.tag = tag;
    const auto post = [&] {
        return fi_trecv(endpoint_->in(), into.data(), into.length, description, FI_ADDR_UNSPEC, tag, 0,
                        &operation.context);
    };
    release_catchers();
    ssize_t error = post();
    if (error == -FI_EAGAIN && progress()) error = post();
    line_up_catchers();
    if (error != 0) {
        erase_operation(operation);
        return fabric_status(Code::unavailable, "the fabric takes no more postings", error);
    }
    operation.transfer = std::make_shared<FabricTransfer>(loop_);
    operation.transfer->outstanding = 1;
    postings_[tag] = {operation.transfer, &operation, std::move(into)};
    arm_housekeeping();
    progress();
    return {};
}

// What the provider already began to fill can not be withdrawn; it keeps the buffer until the rest comes or the
// sender's end is known.
void FabricCore::withdraw(FabricPosting& posting) {
    posting.operation->give_up_at = loop_.now() + settings_.probe_after;
    (void)fi_cancel(&endpoint_->in()->fid, &posting.operation->context);
    progress();
}

Task<Result<std::uint64_t>> FabricCore::wait_payload(Ptr core, std::uint64_t tag, Nanos deadline) {
    const auto posting = core->postings_.find(tag);
    if (posting == core->postings_.end()) co_return not_found("payload tag " + std::to_string(tag) + " is not posted");
    const FabricTransferPtr transfer = posting->second.transfer;
    if (core->is_outstanding(*transfer, 0)) {
        Task<void> waiting = wait_outstanding(core, transfer, 0, deadline);
        co_await waiting;
    }
    const auto place = core->postings_.find(tag);
    if (place != core->postings_.end()) {
        if (place->second.operation && !core->closed_) core->withdraw(place->second);
        core->postings_.erase(tag);
    }
    if (transfer->outstanding != 0) co_return deadline_passed("no payload came in time");
    if (!transfer->status.ok()) co_return transfer->status;
    co_return transfer->length;
}

// A posting of this very endpoint: no need to bother the provider, whose posting is withdrawn.
void FabricCore::payload_to_self(std::uint64_t tag, const Slice& data) {
    const auto place = postings_.find(tag);
    if (place == postings_.end() || !place->second.operation) {
        ++counters_.payloads_discarded;
        return;
    }
    FabricPosting& posting = place->second;
    const FabricTransferPtr transfer = std::move(posting.operation->transfer);
    if (data.length > posting.into.length) {
        transfer->status = corrupt("a payload was longer than the buffer posted for it");
    } else if (data.length != 0) {
        std::memcpy(posting.into.data(), data.data(), data.length);
    }
    transfer->length = data.length;
    transfer->outstanding = 0;
    transfer->changed.notify_all();
    withdraw(posting);
}

Status FabricCore::post_message_buffer(Operation& operation) {
    TRY_ASSIGN(void* const description, endpoint_->describe(operation.held));
    std::byte* const into = operation.held->data() + operation.tag * fabric_fragment_bytes;
    const ssize_t error =
        fi_recv(endpoint_->in(), into, fabric_fragment_bytes, description, FI_ADDR_UNSPEC, &operation.context);
    if (error != 0) {
        ++counters_.provider_errors;
        return fabric_status(Code::unavailable, "posting a buffer for messages", error);
    }
    return {};
}

void FabricCore::message_arrived(Operation& operation, std::uint64_t length) {
    const ByteView bytes(operation.held->data() + operation.tag * fabric_fragment_bytes,
                         static_cast<std::size_t>(length));
    if (length == 0) {  // a greeting
        if (!post_message_buffer(operation).ok()) erase_operation(operation);
        return;
    }
    const auto fragment = decode_fabric_fragment(bytes, Network::message_bytes_max);
    if (!fragment) {
        ++counters_.messages_dropped;
    } else if (auto message = reassembly_.add(*fragment, loop_.now())) {
        deliver(std::move(*message));
    }
    if (!post_message_buffer(operation).ok()) erase_operation(operation);
}

void FabricCore::deliver(Bytes message) {
    for (; inbox_sizes_.size() > inbox_.size(); inbox_sizes_.pop_front())
        inbox_bytes_ -= inbox_sizes_.front();  // taken out since
    const std::uint64_t bytes = message.size();
    if (inbox_bytes_ + bytes > settings_.inbox_bytes || !inbox_.try_send(std::move(message))) {
        ++counters_.messages_dropped;
        return;
    }
    inbox_sizes_.push_back(bytes);
    inbox_bytes_ += bytes;
    ++counters_.messages_received;
}

}  // namespace cairn
