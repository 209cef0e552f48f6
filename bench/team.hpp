// Team: all ranks of the benchmark. They wait for each other asleep: on a machine with fewer cores than ranks a rank that spins in MPI
// would take the time it is there to measure.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// Seconds; comparable between processes of one host.
double now_s();

class Team {
  public:
    enum class Clock { of_each_host, one };
    // Clock::one: hosts that are namespaces of one machine. pause_us_most: ranks that wait long look this seldom whether they may go on;
    // who must start together then meets twice.
    explicit Team(MPI_Comm comm, Clock clock = Clock::of_each_host, std::uint32_t pause_us_most = 200);

    MPI_Comm comm() const { return comm_; }
    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    int hosts() const { return hosts_; }

    // Collective, all of these. Nobody goes on before everybody came.
    void meet() const;
    // From the first begin to the last end; the longest of all where ranks are on several hosts, whose clocks can not be compared.
    double span_s(double begin, double end) const;
    double most(double value) const;
    double least(double value) const;
    std::uint64_t sum(std::uint64_t value) const;
    std::uint64_t sum_before(std::uint64_t value) const;  // of lower ranks
    std::vector<double> gather(double value) const;       // at rank 0, else empty
    std::string broadcast(const std::string& of_rank_0) const;
    bool all(bool mine) const;

    // Asleep until the request is done.
    void wait(MPI_Request& request) const;

  private:
    MPI_Comm comm_;
    int rank_ = 0;
    int ranks_ = 1;
    int hosts_ = 1;
    bool one_clock_ = true;
    std::uint32_t pause_us_most_;
};

// Ends all ranks with this text. The benchmark is an application: it may.
[[noreturn]] void fail(const std::string& text);

}  // namespace bench
