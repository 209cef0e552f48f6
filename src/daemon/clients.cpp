#include "daemon/clients.hpp"

#include <algorithm>
#include <utility>

namespace cairn {

void Clients::joined(ConnectionId client, Id128 incarnation) {
    if (const auto found = clients_.find(client); found != clients_.end()) found->second.jobs.insert(incarnation);
}

std::set<Id128> Clients::remove(ConnectionId client) {
    const auto found = clients_.find(client);
    if (found == clients_.end()) return {};
    std::set<Id128> jobs = std::move(found->second.jobs);
    clients_.erase(found);
    return jobs;
}

std::set<Id128> Clients::jobs() const {
    std::set<Id128> jobs;
    for (const auto& [id, client] : clients_) jobs.insert(client.jobs.begin(), client.jobs.end());
    return jobs;
}

std::uint32_t Clients::sessions() const {
    return static_cast<std::uint32_t>(std::count_if(clients_.begin(), clients_.end(), [](const auto& c) { return c.second.is_application; }));
}

Yielding::Ranks Clients::ranks() const {
    Yielding::Ranks ranks;
    std::set<std::uint64_t> waiting;
    for (const auto& [id, client] : clients_) {
        if (client.is_application) ranks.processes.insert(client.process);
        if (client.waiting > 0) waiting.insert(client.process);
    }
    // Also without a rank, as on an I/O node or when the program has ended: nobody is in the way.
    ranks.all_wait = std::includes(waiting.begin(), waiting.end(), ranks.processes.begin(), ranks.processes.end());
    return ranks;
}

void Clients::Waits::count(int step) {
    const auto found = clients_.clients_.find(client_);
    if (found != clients_.clients_.end()) found->second.waiting += static_cast<unsigned>(step);
}

}  // namespace cairn
