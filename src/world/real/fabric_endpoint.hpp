// FabricEndpoint: the libfabric objects of one daemon, opened together and closed together, and the little that is done
// to them directly. libfabric's headers come in with this one; the rest of Cairn does not include it.
//
// Over ofi_rxm a daemon has two endpoints: one is known by its address and only receives, the other only sends. So each
// connection has one direction, which keeps cutting one off safe (nothing is ever being read over it), and two daemons
// never race to connect.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "world/buffer.hpp"
#include "world/real/fabric.hpp"

namespace cairn {

struct FabricCloser {
    template <class Object>
    void operator()(Object* object) const noexcept {
        fi_close(&object->fid);
    }
};
template <class Object>
using FabricHandle = std::unique_ptr<Object, FabricCloser>;

Status fabric_status(Code code, std::string what, ssize_t error);  // `error`: libfabric's, of either sign

// Memory registered with the provider; keeps the buffer for as long.
struct FabricRegistration {
    std::weak_ptr<Buffer> buffer;
    FabricHandle<fid_mr> region;
};

// One endpoint with its own queue and addresses: ofi_rxm leaves in a queue what it must not touch once the endpoint is
// closed. Members are closed from the last to the first.
struct FabricSide {
    FabricSide() = default;
    FabricSide(FabricSide&&) = default;
    FabricSide& operator=(FabricSide&& other) noexcept {
        endpoint = std::move(other.endpoint);
        addresses = std::move(other.addresses);
        completions = std::move(other.completions);
        wait_descriptor = other.wait_descriptor;
        return *this;
    }
    ~FabricSide() = default;

    FabricHandle<fid_cq> completions;
    int wait_descriptor = -1;
    FabricHandle<fid_av> addresses;
    FabricHandle<fid_ep> endpoint;
};

class FabricEndpoint {
  public:
    static Result<std::unique_ptr<FabricEndpoint>> open(const FabricSettings& settings);

    const std::string& self() const noexcept { return self_; }
    // Where it listens; of a provider that is not tcp: nothing. With several cards self() is no address that others could use.
    const CardPlan& plan() const noexcept { return plan_; }
    const std::vector<HostCard>& host_cards() const noexcept { return host_cards_; }
    std::uint16_t port() const noexcept { return port_; }
    // One, or two: the receiving one first, the sending one last.
    const std::vector<FabricSide>& sides() const noexcept { return sides_; }
    fid_ep* in() const noexcept { return sides_.front().endpoint.get(); }
    fid_ep* out() const noexcept { return sides_.back().endpoint.get(); }

    // True: sleep on the descriptors. False: there is more to read first.
    bool may_sleep() noexcept;
    // For sending to.
    Result<fi_addr_t> insert(const std::string& address);
    // Connects the two endpoints, so that the one that receives is never without a connection: libfabric 1.17 crashes
    // on what the last one left behind. -FI_EAGAIN: again later.
    ssize_t greet() noexcept;
    // A fresh endpoint for sending, where there are two; what was under way in the old one is over, and touches no
    // memory any more. Its descriptor must not be watched.
    Status reopen_out();
    // Forgets the address. True: its connection is closed too, and nothing of what was under way touches memory any
    // more.
    bool remove(fi_addr_t address) noexcept;

    // For receives that the provider will not give back: find out whether their senders' hosts live; end all incoming
    // connections.
    void probe_senders() const;
    void end_senders() const;

    bool registers() const noexcept { return registers_; }
    // The descriptor of a buffer's memory, for providers that want it registered; cached for as long as the buffer
    // lives.
    Result<void*> describe(const BufferPtr& buffer);

    std::uint64_t tag_max() const noexcept { return tag_max_; }
    std::uint64_t payload_bytes_max() const noexcept { return info_->ep_attr->max_msg_size; }

  private:
    FabricEndpoint() = default;
    Status choose(const FabricSettings& settings);
    Result<std::string> choose_host(const FabricSettings& settings);
    Status open_domain();
    Result<FabricSide> open_side();
    Status name_self();

    struct InfoFree {
        void operator()(fi_info* info) const noexcept { fi_freeinfo(info); }
    };
    std::string self_;
    std::string scheme_;
    CardPlan plan_;
    std::vector<HostCard> host_cards_;
    std::uint16_t port_ = 0;  // of the tcp provider, else 0
    bool uses_rxm_ = false;
    bool cuts_connections_ = false;
    bool registers_ = false;
    std::uint64_t tag_max_ = 0;
    std::uint64_t keys_ = 0;
    // In the order in which they are opened: members are closed from the last to the first.
    std::unique_ptr<fi_info, InfoFree> info_;
    FabricHandle<fid_fabric> fabric_;
    FabricHandle<fid_domain> domain_;
    std::unordered_map<const Buffer*, FabricRegistration> registrations_;
    std::vector<FabricSide> sides_;
    fi_addr_t greeted_ = FI_ADDR_NOTAVAIL;
};

}  // namespace cairn
