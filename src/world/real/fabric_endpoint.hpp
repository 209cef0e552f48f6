// FabricEndpoint: the libfabric objects of one daemon, opened together and closed together, and the little that is done to them
// directly. libfabric's headers come in with this one; the rest of Cairn does not include it.
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

#include "world/buffer.hpp"
#include "world/real/fabric.hpp"

namespace cairn {

struct FabricCloser {
    template <class Object>
    void operator()(Object* object) const noexcept { fi_close(&object->fid); }
};
template <class Object>
using FabricHandle = std::unique_ptr<Object, FabricCloser>;

Status fabric_status(Code code, std::string what, ssize_t error);  // `error`: libfabric's, of either sign

// Memory registered with the provider; keeps the buffer for as long.
struct FabricRegistration {
    std::weak_ptr<Buffer> buffer;
    FabricHandle<fid_mr> region;
};

class FabricEndpoint {
  public:
    static Result<std::unique_ptr<FabricEndpoint>> open(const FabricSettings& settings);

    const std::string& self() const noexcept { return self_; }
    fid_ep* endpoint() const noexcept { return endpoint_.get(); }
    fid_cq* completions() const noexcept { return completions_.get(); }
    int wait_descriptor() const noexcept { return wait_descriptor_; }

    // True: sleep on the descriptor. False: there is more to read first.
    bool may_sleep() noexcept;
    Result<fi_addr_t> insert(const std::string& address);
    // Forgets the address. True: its connection is closed too, and nothing of what was under way touches memory any more.
    bool remove(fi_addr_t address) noexcept;

    bool registers() const noexcept { return registers_; }
    // The descriptor of a buffer's memory, for providers that want it registered; cached for as long as the buffer lives.
    Result<void*> describe(const BufferPtr& buffer);

    std::uint64_t tag_max() const noexcept { return tag_max_; }
    std::uint64_t payload_bytes_max() const noexcept { return info_->ep_attr->max_msg_size; }

  private:
    FabricEndpoint() = default;
    Status choose(const FabricSettings& settings);
    Status open_objects();
    Status name_self();

    struct InfoFree {
        void operator()(fi_info* info) const noexcept { fi_freeinfo(info); }
    };
    std::string self_;
    std::string scheme_;
    bool cuts_connections_ = false;
    bool registers_ = false;
    int wait_descriptor_ = -1;
    std::uint64_t tag_max_ = 0;
    std::uint64_t keys_ = 0;
    // In the order in which they are opened: members are closed from the last to the first.
    std::unique_ptr<fi_info, InfoFree> info_;
    FabricHandle<fid_fabric> fabric_;
    FabricHandle<fid_domain> domain_;
    std::unordered_map<const Buffer*, FabricRegistration> registrations_;
    FabricHandle<fid_cq> completions_;
    FabricHandle<fid_av> addresses_;
    FabricHandle<fid_ep> endpoint_;
};

}  // namespace cairn
