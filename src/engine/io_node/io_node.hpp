// I/O node: a member of a job that runs none of its ranks and leads its flushes (model/plan).
//
// No application introduces a job to it: the coordinator's first call does, and what it says is believed only as far as the job's roster under persistent
// bears it out. So one that was killed and started again needs no memory: it is called at the address that it has published since. A job is over when its
// coordinator's daemon has taken its roster away (or `cairn gc` has).
#pragma once

#include "engine/role.hpp"

namespace cairn::engine {

class IoNode : Role {
  public:
    // The jobs of the node.
    class Jobs {
      public:
        virtual ~Jobs() = default;
        virtual const std::map<Id128, JobPtr>& known() const = 0;
        virtual void join(Id128 incarnation, JobPtr job) = 0;
        virtual bool forget(Id128 incarnation) = 0;  // false while something of it is being written here
        virtual void handle(message::Message message) = 0;
    };

    IoNode(Common& common, Jobs& jobs);

    // From now on, under this name; once.
    void serve_as(std::string name);
    // Of a job that is not known here.
    void on_stranger(message::Message message);

  private:
    Task<void> learn(message::Message message);
    Task<void> forget_ended_jobs();

    Jobs& jobs_;
    std::string name_;                   // empty: it is none
    std::map<Id128, Nanos> looked_for_;  // jobs that were not known here when something of them came, and when their roster was looked for
    std::uint32_t looking_ = 0;
};

}  // namespace cairn::engine
