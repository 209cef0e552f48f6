// FabricEndpoint: choosing a provider, opening and closing.
#include "world/real/fabric_endpoint.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "world/real/card_address.hpp"
#include "world/real/fabric_address.hpp"
#include "world/real/fabric_frames.hpp"
#include "world/real/fabric_sockets.hpp"

namespace cairn {

namespace {

// libfabric takes these from the environment alone, once, when it is first used in a process. Set for that moment where
// the user has not, and taken away again.
class ProviderDefaults {
  public:
    explicit ProviderDefaults(const std::string& provider) {
        // Others need not be loaded; some of them install signal handlers.
        if (provider == "tcp;ofi_rxm") set("FI_PROVIDER", "tcp,ofi_rxm");
        // Removing an address closes its connection: the only way to get a buffer back that a dead peer will never
        // read.
        set("FI_AV_REMOVE_CLEANUP", "1");
        // ofi_rxm: the eager limit, and how many receives it keeps posted; by default its pools take 140 MiB, so 20.
        set("FI_OFI_RXM_BUFFER_SIZE", std::to_string(fabric_fragment_bytes).c_str());
        set("FI_OFI_RXM_MSG_RX_SIZE", "512");
        // ofi_rxm makes its inner completion queue as long as if so many peers filled theirs at once, and goes round in it: 8 MiB for each endpoint by
        // default, that fill up over days. What does not fit is queued behind it.
        if (provider == "tcp;ofi_rxm") set("FI_UNIVERSE_SIZE", "8");
    }
    ProviderDefaults(const ProviderDefaults&) = delete;
    ~ProviderDefaults() {
        for (const char* name : set_here_) ::unsetenv(name);
    }

  private:
    void set(const char* name, const char* value) {
        if (std::getenv(name)) return;
        if (::setenv(name, value, 0) == 0) set_here_.push_back(name);
    }
    std::vector<const char*> set_here_;
};

// Libraries that providers load install signal handlers of their own; a crash would then run those instead of leaving
// a core, and SIGTERM might not be what the daemon makes of it. What has changed when this goes is changed back.
class SignalsKept {
  public:
    SignalsKept() {
        for (int number = 1; number < NSIG; ++number) known_[number] = ::sigaction(number, nullptr, &kept_[number]) == 0;
    }
    SignalsKept(const SignalsKept&) = delete;
    ~SignalsKept() {
        for (int number = 1; number < NSIG; ++number) {
            struct sigaction now = {};
            if (!known_[number] || ::sigaction(number, nullptr, &now) != 0) continue;
            if (now.sa_handler != kept_[number].sa_handler) ::sigaction(number, &kept_[number], nullptr);
        }
    }

  private:
    bool known_[NSIG] = {};
    struct sigaction kept_[NSIG] = {};
};

std::string provider_name(const std::string& setting) { return setting == "tcp" ? "tcp;ofi_rxm" : setting; }

bool is_socket_format(std::uint32_t format) {
    return format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
}

// One hint for all providers: what the network needs and no more, so that each can offer its fastest.
fi_info* make_hints(const std::string& provider) {
    fi_info* hints = fi_allocinfo();
    if (!hints) return nullptr;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->fabric_attr->prov_name = ::strdup(provider.c_str());
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    return hints;
}

std::string providers_there() {
    fi_info* list = nullptr;
    std::string names;
    if (fi_getinfo(FI_VERSION(1, 14), nullptr, nullptr, 0, nullptr, &list) != 0) return "none";
    for (const fi_info* info = list; info; info = info->next) {
        const std::string name = info->fabric_attr->prov_name;
        if (info->ep_attr->type == FI_EP_RDM && (", " + names + ",").find(", " + name + ",") == std::string::npos)
            names += (names.empty() ? "" : ", ") + name;
    }
    fi_freeinfo(list);
    return names;
}

}  // namespace

Status fabric_status(Code code, std::string what, ssize_t error) {
    return {code, std::move(what) + ": " + fi_strerror(static_cast<int>(error < 0 ? -error : error))};
}

Result<std::unique_ptr<FabricEndpoint>> FabricEndpoint::open(const FabricSettings& settings) {
    const SignalsKept signals;
    std::unique_ptr<FabricEndpoint> self(new FabricEndpoint);
    TRY(self->choose(settings));
    TRY(self->open_domain());
    for (int i = 0; i < (self->uses_rxm_ ? 2 : 1); ++i) {
        TRY_ASSIGN(FabricSide side, self->open_side());
        self->sides_.push_back(std::move(side));
    }
    TRY(self->name_self());
    return self;
}

Result<std::string> FabricEndpoint::choose_host(const FabricSettings& settings) {
    if (settings.provider != "tcp") return choose_host_address(settings.interface);
    host_cards_ = settings.host_cards.empty() ? read_host_cards(settings.rates_mbps) : settings.host_cards;
    TRY_ASSIGN(plan_, plan_cards(host_cards_, settings.interface));
    return plan_.bind;
}

Status FabricEndpoint::choose(const FabricSettings& settings) {
    const std::string provider = provider_name(settings.provider);
    const ProviderDefaults defaults(provider);
    const std::unique_ptr<fi_info, InfoFree> hints(make_hints(provider));
    if (!hints) return {Code::out_of_space, "no memory for libfabric"};
    const Result<std::string> host = choose_host(settings);
    fi_info* found = nullptr;
    int error = -FI_ENODATA;
    if (host.ok()) error = fi_getinfo(FI_VERSION(1, 14), host->c_str(), nullptr, FI_SOURCE, hints.get(), &found);
    if (error != 0 &&
        !(settings.provider == "tcp")) {  // a provider without IP addressing: `interface` names its domain
        if (!settings.interface.empty()) hints->domain_attr->name = ::strdup(settings.interface.c_str());
        error = fi_getinfo(FI_VERSION(1, 14), nullptr, nullptr, 0, hints.get(), &found);
    }
    if (error != 0 && !host.ok()) return host.status();
    if (error != 0) {
        return fabric_status(Code::invalid_argument,
                             "libfabric has no provider '" + provider + "' for interface '" + host.value() +
                                 "' (there are: " + providers_there() + ")",
                             error);
    }
    info_.reset(found);
    scheme_ = settings.provider.substr(0, settings.provider.find(';'));
    const std::string_view chosen = info_->fabric_attr->prov_name;
    const char* cleanup = std::getenv("FI_AV_REMOVE_CLEANUP");
    uses_rxm_ = chosen.find("ofi_rxm") != std::string_view::npos;
    cuts_connections_ = uses_rxm_ && cleanup && cleanup[0] == '1';
    registers_ = (info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
    const std::uint64_t format = info_->ep_attr->mem_tag_format;
    tag_max_ = format == 0 ? UINT64_MAX : UINT64_MAX >> std::countl_zero(format);
    return {};
}

Status FabricEndpoint::open_domain() {
    fid_fabric* fabric = nullptr;
    if (int error = fi_fabric(info_->fabric_attr, &fabric, nullptr))
        return fabric_status(Code::unavailable, "opening the fabric", error);
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    if (int error = fi_domain(fabric, info_.get(), &domain, nullptr))
        return fabric_status(Code::unavailable, "opening the fabric's domain", error);
    domain_.reset(domain);
    return {};
}

Result<FabricSide> FabricEndpoint::open_side() {
    const auto failed = [](const char* what, int error) { return fabric_status(Code::unavailable, what, error); };
    FabricSide side;
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_TAGGED;
    queue.wait_obj = FI_WAIT_FD;
    queue.size = 4096;
    fid_cq* completions = nullptr;
    if (int error = fi_cq_open(domain_.get(), &queue, &completions, nullptr))
        return failed("opening the completion queue", error);
    side.completions.reset(completions);
    if (int error = fi_control(&completions->fid, FI_GETWAIT, &side.wait_descriptor))
        return failed("the queue's descriptor", error);
    (void)::fcntl(side.wait_descriptor, F_SETFD, FD_CLOEXEC);

    fi_av_attr vector{};
    vector.type = FI_AV_TABLE;
    fid_av* addresses = nullptr;
    if (int error = fi_av_open(domain_.get(), &vector, &addresses, nullptr))
        return failed("opening the address vector", error);
    side.addresses.reset(addresses);

    fid_ep* endpoint = nullptr;
    if (int error = fi_endpoint(domain_.get(), info_.get(), &endpoint, nullptr))
        return failed("opening the endpoint", error);
    side.endpoint.reset(endpoint);
    if (int error = fi_ep_bind(endpoint, &completions->fid, FI_SEND | FI_RECV))
        return failed("binding the queue", error);
    if (int error = fi_ep_bind(endpoint, &addresses->fid, 0)) return failed("binding the address vector", error);
    if (int error = fi_enable(endpoint)) return failed("enabling the endpoint", error);
    return side;
}

Status FabricEndpoint::name_self() {
    Bytes raw(512);
    std::size_t bytes = raw.size();
    if (int error = fi_getname(&in()->fid, raw.data(), &bytes))
        return fabric_status(Code::unavailable, "asking the endpoint its name", error);
    TRY_ASSIGN(self_, print_fabric_address(scheme_, info_->addr_format, ByteView(raw.data(), bytes)));
    if (scheme_ == "tcp" && is_socket_format(info_->addr_format) && bytes >= sizeof(sockaddr_in)) {
        sockaddr_in address;  // the port lies at the same place in both families
        std::memcpy(&address, raw.data(), sizeof address);
        port_ = ntohs(address.sin_port);
    }
    return {};
}

void FabricEndpoint::probe_senders() const { probe_accepted_sockets(port_); }
void FabricEndpoint::end_senders() const { end_accepted_sockets(port_); }

bool FabricEndpoint::may_sleep() noexcept {
    fid* queues[2];
    int count = 0;
    for (const FabricSide& side : sides_) queues[count++] = &side.completions->fid;
    return fi_trywait(fabric_.get(), queues, count) == 0;
}

Result<fi_addr_t> FabricEndpoint::insert(const std::string& address) {
    TRY_ASSIGN(Bytes raw, parse_fabric_address(scheme_, info_->addr_format, address));
    if (!is_socket_format(info_->addr_format)) raw.resize(512);  // the provider reads its own length
    fi_addr_t where = FI_ADDR_NOTAVAIL;
    const int inserted = fi_av_insert(sides_.back().addresses.get(), raw.data(), 1, &where, 0, nullptr);
    if (inserted != 1 || where == FI_ADDR_NOTAVAIL) {
        return fabric_status(Code::invalid_argument, "the fabric does not take the address '" + address + "'",
                             inserted < 0 ? inserted : -FI_EINVAL);
    }
    return where;
}

ssize_t FabricEndpoint::greet() noexcept {
    if (!uses_rxm_) return 0;
    if (greeted_ == FI_ADDR_NOTAVAIL) {
        const char* const inside = plan_.bind == "::" ? "::1" : "127.0.0.1";
        Result<fi_addr_t> where = insert(plan_.cards.size() > 1 ? "tcp://" + host_port(inside, port_) : self_);
        if (!where.ok()) return -FI_EINVAL;
        greeted_ = *where;
    }
    return fi_inject(out(), &greeted_, 0, greeted_);
}

Status FabricEndpoint::reopen_out() {
    if (!uses_rxm_) return {};
    greeted_ = FI_ADDR_NOTAVAIL;
    TRY_ASSIGN(FabricSide side, open_side());
    sides_.back() = std::move(side);
    return {};
}

bool FabricEndpoint::remove(fi_addr_t address) noexcept {
    return fi_av_remove(sides_.back().addresses.get(), &address, 1, 0) == 0 && cuts_connections_;
}

Result<void*> FabricEndpoint::describe(const BufferPtr& buffer) {
    if (!registers_) return static_cast<void*>(nullptr);
    const auto known = registrations_.find(buffer.get());
    if (known != registrations_.end() && known->second.buffer.lock() == buffer)
        return fi_mr_desc(known->second.region.get());
    std::erase_if(registrations_, [](const auto& entry) { return entry.second.buffer.expired(); });
    fid_mr* region = nullptr;
    const int error =
        fi_mr_reg(domain_.get(), buffer->data(), buffer->size(), FI_SEND | FI_RECV, 0, ++keys_, 0, &region, nullptr);
    if (error != 0) return fabric_status(Code::unavailable, "registering a buffer with the fabric", error);
    registrations_[buffer.get()] = {buffer, FabricHandle<fid_mr>(region)};
    return fi_mr_desc(region);
}

}  // namespace cairn
