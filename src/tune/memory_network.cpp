#include "tune/memory_network.hpp"

#include <algorithm>
#include <cstring>

namespace cairn::tune {

namespace {

constexpr std::size_t inbox_messages = 4096;
constexpr unsigned copiers = 2;  // one copies some 10 GB/s, which is less than a fast card brings

struct Posting {
    Posting(Clock& clock, Slice slice) : into(std::move(slice)), changed(clock) {}
    Slice into;
    bool taken = false;
    bool filled = false;
    std::uint64_t length = 0;
    Event changed;
};

// Holds both slices until it is done, whoever still waits.
class Copy final : public Job {
  public:
    Copy(Slice from, std::shared_ptr<Posting> posting) : from_(std::move(from)), posting_(std::move(posting)) {}
    void run() override { std::memcpy(posting_->into.data(), from_.data(), from_.length); }
    void finished() override {
        posting_->filled = true;
        posting_->length = from_.length;
        posting_->changed.notify_all();
    }

  private:
    Slice from_;
    std::shared_ptr<Posting> posting_;
};

}  // namespace

struct MemoryPort {
    explicit MemoryPort(Clock& clock) : inbox(clock, inbox_messages) {}
    Channel<Bytes> inbox;
    std::map<std::uint64_t, std::shared_ptr<Posting>> postings;
};

MemorySwitch::MemorySwitch(Loop& loop) : loop_(loop), copiers_(loop.remote(), {.name = "cairn-copy", .threads_max = copiers, .thread_class = {}}) {}

MemoryNetwork::MemoryNetwork(MemorySwitch& network_switch)
    : switch_(network_switch), self_("memory://" + std::to_string(++network_switch.plugged_)), port_(std::make_shared<MemoryPort>(network_switch.loop_)) {
    switch_.ports_[self_] = port_;
}
MemoryNetwork::~MemoryNetwork() { switch_.ports_.erase(self_); }

Channel<Bytes>& MemoryNetwork::inbox() { return port_->inbox; }

Task<Status> MemoryNetwork::send(Address to, Bytes message, Nanos) {
    if (message.size() > message_bytes_max) co_return invalid_argument("a message of " + std::to_string(message.size()) + " bytes is too large");
    const auto found = switch_.ports_.find(to);
    if (found == switch_.ports_.end()) co_return unavailable(to + ": no such endpoint");
    found->second->inbox.try_send(std::move(message));  // full: lost, like any datagram
    co_return Status();
}

Task<Status> MemoryNetwork::send_payload(Address to, std::uint64_t tag, Slice data, Nanos deadline) {
    Loop& loop = switch_.loop_;
    const auto port = switch_.ports_.find(to);
    if (port == switch_.ports_.end()) co_return unavailable(to + ": no such endpoint");
    const auto posted = port->second->postings.find(tag);
    if (posted == port->second->postings.end() || posted->second->taken) co_return Status();  // nobody wants it: dropped
    const std::shared_ptr<Posting> posting = posted->second;
    posting->taken = true;
    Slice from = data.part(0, std::min(data.length, posting->into.length));
    CO_TRY(switch_.copiers_.submit(std::make_shared<Copy>(std::move(from), posting)));
    while (!posting->filled && loop.now() < deadline) co_await posting->changed.wait(deadline);
    if (!posting->filled) co_return deadline_passed("a payload was not copied in time");
    co_return Status();
}

Status MemoryNetwork::post_payload(std::uint64_t tag, Slice into) {
    if (port_->postings.count(tag)) return invalid_argument("tag " + std::to_string(tag) + " is posted already");
    port_->postings[tag] = std::make_shared<Posting>(switch_.loop_, std::move(into));
    return {};
}

Task<Result<std::uint64_t>> MemoryNetwork::wait_payload(std::uint64_t tag, Nanos deadline) {
    Loop& loop = switch_.loop_;
    const std::shared_ptr<MemoryPort> port = port_;
    const auto found = port->postings.find(tag);
    if (found == port->postings.end()) co_return not_found("tag " + std::to_string(tag) + " is not posted");
    const std::shared_ptr<Posting> posting = found->second;
    while (!posting->filled && loop.now() < deadline) co_await posting->changed.wait(deadline);
    port->postings.erase(tag);
    if (!posting->filled) co_return deadline_passed("no payload came in time");
    co_return posting->length;
}

}  // namespace cairn::tune
