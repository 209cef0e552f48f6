// Requests: each one's way to its one answer, and who asked.
#pragma once

#include <string>
#include <vector>

#include "daemon/adoption.hpp"
#include "daemon/asked.hpp"
#include "daemon/clients.hpp"
#include "daemon/ended_jobs.hpp"
#include "daemon/epochs.hpp"
#include "daemon/left_slots.hpp"
#include "engine/router/dead_images.hpp"
#include "model/control.hpp"

namespace cairn {

class Requests {
  public:
    // What only the daemon as a whole can say or do.
    class House {
      public:
        virtual ~House() = default;
        virtual Task<Status> adopted() = 0;  // scratch has been gone through; deadline: not in time
        virtual bool is_stopping() const = 0;
        virtual bool has_stopped() const = 0;  // nothing goes on any more
        virtual void job_opened(Id128 incarnation) = 0;  // one that this node did not know
        virtual void describe(control::NodeStatus& status) const = 0;
        virtual std::uint64_t process_of(ConnectionId client) const = 0;  // 0: not visible from here
        virtual void client_left(Slots::Left left) = 0;
        virtual void tell_cards(control::NodeStatus&) const {}  // of the network
        // Finishes what it can; what is left over. It ends once this was answered.
        virtual Task<std::vector<VersionKey>> finish(Nanos wait) = 0;
    };
    // What is asked.
    struct Parts {
        World world;
        Node& node;
        Slots& slots;
        Jobs& jobs;
        Adoption& adoption;
        EndedJobs& ended_jobs;
        Epochs& epochs;
        DeadImages& dead_images;
        AskedImages& asked;
    };
    // What does not change.
    struct Facts {
        std::string node;     // its name
        std::string storage;  // how files are read and written
        bool io_node = false;
        Layout layout;
        Nanos io_wait = 0;
    };
    Requests(Parts parts, House& house, Facts facts);

    Task<control::Answer> answer(ConnectionId from, control::Request request);
    void disconnected(ConnectionId from);
    const Clients& clients() const { return clients_; }

  private:
    Task<control::Answer> handle(ConnectionId from, control::Hello request);
    Task<control::Answer> handle(ConnectionId from, control::Join request);
    Task<control::Answer> handle(ConnectionId from, control::Acquire request);
    Task<control::Answer> handle(ConnectionId from, control::Sealed request);
    Task<control::Answer> handle(ConnectionId from, control::Release request);
    Task<control::Answer> handle(ConnectionId from, control::Wait request);
    Task<control::Answer> handle(ConnectionId from, control::Cancel request);
    Task<control::Answer> handle(ConnectionId from, control::Images request);
    Task<control::Answer> handle(ConnectionId from, control::Unpin request);
    Task<control::Answer> handle(ConnectionId from, control::GetStatus request);
    Task<control::Answer> handle(ConnectionId from, control::Stop request);
    Task<control::Answer> handle(ConnectionId from, control::Offer request);
    Task<control::Answer> handle(ConnectionId from, control::Give request);
    Task<control::Answer> handle(ConnectionId from, control::Prepare request);
    Task<Status> check_epoch(VersionKey key, Nanos wait);
    Task<Status> take_image(ConnectionId from, const control::Sealed& request);
    Task<control::State> state_of(VersionKey key, bool ask_persistent);
    control::NodeStatus status() const;

    Parts parts_;
    House& house_;
    Facts facts_;
    Nanos started_;
    Clients clients_;
};

}  // namespace cairn
