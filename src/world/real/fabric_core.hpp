// FabricCore: what FabricNetwork is made of. Coroutines hold it by shared pointer, so that destroying the network under
// them is safe.
//
// Who owns what: an operation is created when the provider has taken it and erased when the provider gives it back,
// whoever is still interested. Its slice's buffer is let go of then, or when its connection was cut. A transfer is what
// a coroutine waits for.
//   fabric_core.cpp     completions, house-keeping, cutting
//   fabric_transfer.cpp messages and payloads, out and in
//   fabric_ways.cpp     over which card, to whoever has several
#pragma once

#include <deque>
#include <list>
#include <unordered_map>
#include <set>
#include <vector>

#include "world/real/fabric_endpoint.hpp"
#include "world/real/fabric_frames.hpp"
#include "world/real/hail.hpp"

namespace cairn {

// Of a peer with several cards: over which it is reached.
struct FabricWays {
    std::uint64_t id = 0;
    std::uint16_t port = 0;  // of its beacon
    std::vector<Way> ways;   // best first; at least one
    std::optional<std::size_t> taken;
    std::string answered;    // host and port over which it last did
    std::optional<std::size_t> better;  // answered; taken once nothing is under way over the other
    bool is_doubted = false;            // a connection ended
    Nanos hailed = 0;                   // last time; 0: never
    Nanos moved = 0;                    // last time something went through, or the first of what is under way began
    Nanos refused = 0;                  // since then nothing can be begun; 0: it can
};

struct FabricPeer {
    Address address;
    std::unique_ptr<FabricWays> ways;  // none: it has one card
    std::string over;                  // card of this host; empty: not known
    fi_addr_t where = FI_ADDR_NOTAVAIL;
    Nanos used = 0;
    std::size_t operations = 0;
};
using FabricPeerPtr = std::shared_ptr<FabricPeer>;

// One payload, or all fragments of one message.
struct FabricTransfer {
    explicit FabricTransfer(Clock& clock) : changed(clock) {}
    Event changed;
    std::size_t outstanding = 0;
    Status status;
    std::uint64_t length = 0;  // received
};
using FabricTransferPtr = std::shared_ptr<FabricTransfer>;

struct FabricOperation;
struct FabricContext {
    fi_context2 provider;  // first: the provider's to scribble in
    FabricOperation* operation;
};

struct FabricOperation {
    enum class Kind { message_in, message_out, payload_in, payload_out, unposted_in, unmatched, given_up };
    Kind kind = Kind::given_up;
    FabricContext context{};
    FabricTransferPtr transfer;
    FabricPeerPtr peer;
    BufferPtr held;
    FabricHeaderBytes header;
    std::uint64_t tag = 0;
    Nanos give_up_at = never;  // then the connection is cut
    std::list<FabricOperation>::iterator place;
};

// What to send: a fragment of a message with its header, or a payload with its tag.
struct FabricSend {
    FabricOperation::Kind kind = FabricOperation::Kind::message_out;
    FabricPeerPtr peer;
    FabricTransferPtr transfer;
    Slice data;
    FabricHeaderBytes header{};
    std::uint64_t tag = 0;
    Nanos give_up_at = never;
};

struct FabricPosting {
    FabricTransferPtr transfer;
    FabricOperation* operation = nullptr;  // null once the provider gave it back
    Slice into;
};

class FabricCore {
  public:
    FabricCore(Loop& loop, const FabricSettings& settings, std::unique_ptr<FabricEndpoint> endpoint, std::unique_ptr<Beacon> beacon);
    FabricCore(const FabricCore&) = delete;
    Status start();
    void close();

    using Ptr = std::shared_ptr<FabricCore>;
    static Task<Status> send_message(Ptr core, Address to, Bytes message, Nanos deadline);
    static Task<Status> send_payload(Ptr core, Address to, std::uint64_t tag, Slice data, Nanos deadline);
    static Task<Result<std::uint64_t>> wait_payload(Ptr core, std::uint64_t tag, Nanos deadline);
    Status post_payload(std::uint64_t tag, Slice into);

    const Address& self() const noexcept { return self_; }
    Channel<Bytes>& inbox() noexcept { return inbox_; }
    FabricCounters counters() const;
    std::vector<FabricCard> cards() const;
    const std::string& card_choice() const noexcept { return card_choice_; }

  private:
    using Operation = FabricOperation;
    using Kind = FabricOperation::Kind;
    static constexpr std::size_t catchers = 8;

    // fabric_core.cpp
    Operation& add_operation(Kind kind);
    void erase_operation(Operation& operation);
    void finish(Operation& operation, Status status);
    void give_up(Operation& operation, Status status);
    bool progress();
    bool read_queue(fid_cq* queue);
    void completed(const fi_cq_tagged_entry& entry);
    void read_error(fid_cq* queue);
    void failed(Operation& operation, const fi_cq_err_entry& error);
    void on_readable();
    void keep_house();
    void arm_housekeeping();
    void arm_poll(bool soon);
    bool is_busy() const noexcept;
    void cut(FabricPeer& peer, std::string_view why);
    bool sends_data(const FabricPeer* peer, Nanos now) const;
    void cut_overdue(Nanos now);
    void forget_idle_peers();
    void withdraw_all();
    Status watch();
    void unwatch();
    void greet();
    void renew_out();
    void catch_unposted();
    void release_catchers();
    void line_up_catchers();
    void drop_unmatched();
    void nothing_unmatched(Operation& operation);
    void caught(Operation& operation, bool cancelled);
    void returned(Operation& operation);

    // fabric_transfer.cpp
    Result<FabricPeerPtr> find_peer(const Address& address);
    ssize_t try_send(const FabricSend& request);
    ssize_t send_fragment(const FabricSend& request, Operation& operation);
    ssize_t try_send_again(const FabricSend& request);
    bool is_outstanding(const FabricTransfer& transfer, std::size_t at_most);
    static Task<Status> send_patiently(Ptr core, FabricSend request, Nanos deadline);
    static Task<void> wait_outstanding(Ptr core, FabricTransferPtr transfer, std::size_t at_most, Nanos deadline);
    ssize_t send_whole(const FabricSend& request, Operation& operation);
    Status check_payload(std::uint64_t tag, const Slice& slice) const;
    void payload_to_self(std::uint64_t tag, const Slice& data);
    void withdraw(FabricPosting& posting);
    Status post_message_buffer(Operation& operation);
    void message_arrived(Operation& operation, std::uint64_t length);
    void deliver(Bytes message);

    // fabric_ways.cpp
    Status find_ways(FabricPeer& peer) const;
    std::string card_to(const Address& address) const;
    static std::string place_of(const FabricPeer& peer);
    bool has_way(const FabricPeerPtr& peer);
    void hail(const FabricPeerPtr& peer, Nanos patience);
    void heard_of(const FabricPeerPtr& peer, std::optional<std::size_t> way, const std::vector<Heard>& heard);
    void take_way(FabricPeer& peer, std::size_t way, bool answered);
    void leave_way(FabricPeer& peer);
    void began_over_way(FabricPeer& peer) const;
    void doubt_ways();
    void look_at_sockets();
    bool is_stuck(const FabricPeer& peer, Nanos now) const;

    Loop& loop_;
    const FabricSettings settings_;
    std::unique_ptr<FabricEndpoint> endpoint_;
    const Address self_;
    Channel<Bytes> inbox_;
    Event progressed_;
    bool closing_ = false;
    bool closed_ = false;
    std::vector<Loop::WatchId> watches_;
    Clock::TimerId house_timer_ = 0;
    Clock::TimerId poll_timer_ = 0;
    Nanos active_until_ = 0;
    bool is_greeted_ = false;
    bool is_dropping_ = false;    // what lies unmatched in the provider; then the catchers line up
    std::size_t lost_sends_ = 0;  // given up, and not given back by the provider

    std::list<Operation> operations_;
    std::unordered_map<Address, FabricPeerPtr> peers_;
    std::unordered_map<std::uint64_t, FabricPosting> postings_;  // by tag, until waited for
    std::vector<Operation*> catchers_;                           // posted, and last in line
    BufferPtr scrap_;
    std::uint64_t sender_id_ = 0;
    std::uint64_t last_message_ = 0;
    std::uint64_t sends_ = 0;
    FabricReassembly reassembly_;
    std::deque<std::uint64_t> inbox_sizes_;  // of what lies in the inbox, oldest first
    std::uint64_t inbox_bytes_ = 0;
    FabricCounters counters_;

    std::unique_ptr<Beacon> beacon_;  // none: one card
    std::vector<FabricCard> cards_;
    std::string card_choice_;
    std::unordered_map<const FabricPeer*, std::unique_ptr<Hail>> hails_;  // under way
    std::set<std::string> told_;                                          // cards over which somebody was not reached
    std::size_t peers_with_ways_ = 0;
    Nanos looked_at_sockets_ = 0;
};

std::uint64_t draw_fabric_id();


}  // namespace cairn
