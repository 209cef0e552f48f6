// Clients: who is connected, which of them are processes of an application, what they joined, and who sits in a request and does nothing else.
#pragma once

#include <map>
#include <set>

#include "daemon/server.hpp"
#include "daemon/yielding.hpp"

namespace cairn {

class Clients {
  public:
    void add(ConnectionId client, bool is_application, std::uint64_t process) { clients_[client] = {is_application, process, 0, {}}; }
    bool has(ConnectionId client) const { return clients_.count(client) != 0; }
    // Nothing of one that has gone.
    void joined(ConnectionId client, Id128 incarnation);
    // The jobs that it joined.
    std::set<Id128> remove(ConnectionId client);
    std::set<Id128> jobs() const;  // of all

    std::uint32_t sessions() const;
    Yielding::Ranks ranks() const;

    // While it lives the client's process waits for us and does nothing else.
    class Waits {
      public:
        Waits(Clients& clients, ConnectionId client) : clients_(clients), client_(client) { count(+1); }
        Waits(const Waits&) = delete;
        ~Waits() { count(-1); }

      private:
        void count(int step);
        Clients& clients_;
        ConnectionId client_;
    };

  private:
    struct Client {
        bool is_application = false;
        std::uint64_t process = 0;
        unsigned waiting = 0;  // requests that its process sits in: for a slot, for a version
        std::set<Id128> jobs;
    };
    std::map<ConnectionId, Client> clients_;
};

}  // namespace cairn
