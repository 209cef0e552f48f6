// Exchange: how the ranks of a session talk to each other at collective calls, and only there. Three ways: alone,
// through the caller's own collectives (MPI is one), through files (many processes that know their rank and a common
// job id; rendezvous.hpp).
//
// Every collective call ends in agree(): all ranks return the same status. An exchange that failed once is not used
// again: its ranks no longer stand at the same place.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "cairn/cairn.h"
#include "client/deadline.hpp"
#include "model/types.hpp"

namespace cairn {

class Exchange {
  public:
    Exchange(Rank rank, std::uint32_t ranks) : rank_(rank), ranks_(ranks) {}
    virtual ~Exchange() = default;
    Exchange(const Exchange&) = delete;

    Rank rank() const noexcept { return rank_; }
    std::uint32_t ranks() const noexcept { return ranks_; }

    // Every rank's bytes, in rank order.
    Result<std::vector<Bytes>> allgather(const Bytes& mine, Deadline deadline);
    // Rank 0's bytes; what other ranks give is ignored.
    Result<Bytes> broadcast(const Bytes& of_rank_0, Deadline deadline);
    // ok when all ranks are; else, on every rank alike, what the lowest rank that failed says.
    Status agree(const Status& mine, Deadline deadline);
    // The last one: everybody is to come. ok also where others came before and have gone, tired of waiting for this
    // rank: it is told by their deadline, and there is nobody to wait for.
    virtual Status leave(Deadline deadline) { return agree({}, deadline); }
    // In the place of leave(), for who has no need of the others' word and waits for none, alive or not: all of the exchange's ranks go this way. The last
    // one clears away what only all together may.
    virtual void part() {}
    // All ranks are in this incarnation now. For who finds what this exchange leaves behind when it is killed (`cairn gc`).
    virtual void serves(Id128 incarnation) { static_cast<void>(incarnation); }

  protected:
    virtual Result<std::vector<Bytes>> do_allgather(const Bytes& mine, Deadline deadline) = 0;
    virtual Result<Bytes> do_broadcast(const Bytes& of_rank_0, Deadline deadline) = 0;

  private:
    Rank rank_;
    std::uint32_t ranks_;
    Status broken_;
};

// One process, no others.
class SelfExchange final : public Exchange {
  public:
    SelfExchange() : Exchange(0, 1) {}

  private:
    Result<std::vector<Bytes>> do_allgather(const Bytes& mine, Deadline deadline) override;
    Result<Bytes> do_broadcast(const Bytes& of_rank_0, Deadline deadline) override;
};

// The caller's own collectives. Calls release(context) when it goes.
class CallerExchange final : public Exchange {
  public:
    CallerExchange(Rank rank, std::uint32_t ranks, const cairn_exchange& calls)
        : Exchange(rank, ranks), calls_(calls) {}
    ~CallerExchange() override;

  private:
    Result<std::vector<Bytes>> do_allgather(const Bytes& mine, Deadline deadline) override;
    Result<Bytes> do_broadcast(const Bytes& of_rank_0, Deadline deadline) override;
    cairn_exchange calls_;
};

// "rank 3", "ranks 0-2, 7": for errors that name who is missing.
std::string rank_list(const std::vector<Rank>& ranks);

}  // namespace cairn
