#include "team.hpp"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace bench {

double now_s() {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void fail(const std::string& text) {
    std::fprintf(stderr, "cairn_bench: %s\n", text.c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}

Team::Team(MPI_Comm comm, Clock clock, std::uint32_t pause_us_most) : comm_(comm), pause_us_most_(pause_us_most) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &ranks_);
    MPI_Comm here = MPI_COMM_NULL;
    int rank_here = 0;
    MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &rank_here);
    MPI_Comm_free(&here);
    hosts_ = static_cast<int>(sum(rank_here == 0 ? 1 : 0));
    one_clock_ = clock == Clock::one || hosts_ == 1;
}

void Team::wait(MPI_Request& request) const {
    constexpr std::uint32_t pause_us_least = 200;
    constexpr int looks_before_patience = 50;
    std::uint32_t pause_us = pause_us_least;
    for (int looks = 0;; ++looks) {
        int done = 0;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done) return;
        const timespec pause = {0, 1000l * pause_us};
        ::nanosleep(&pause, nullptr);
        if (looks >= looks_before_patience) pause_us = std::min(pause_us_most_, pause_us + pause_us / 4);
    }
}

void Team::meet() const {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm_, &request);
    wait(request);
}

double Team::span_s(double begin, double end) const {
    return one_clock_ ? most(end) - least(begin) : most(end - begin);
}

double Team::most(double value) const {
    meet();
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, comm_);
    return value;
}

double Team::least(double value) const {
    meet();
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MIN, comm_);
    return value;
}

std::uint64_t Team::sum(std::uint64_t value) const {
    meet();
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, comm_);
    return value;
}

std::uint64_t Team::sum_before(std::uint64_t value) const {
    std::uint64_t before = 0;
    MPI_Exscan(&value, &before, 1, MPI_UINT64_T, MPI_SUM, comm_);
    return rank_ == 0 ? 0 : before;
}

std::vector<double> Team::gather(double value) const {
    std::vector<double> values(rank_ == 0 ? static_cast<std::size_t>(ranks_) : 0);
    meet();
    MPI_Gather(&value, 1, MPI_DOUBLE, values.data(), 1, MPI_DOUBLE, 0, comm_);
    return values;
}

std::string Team::broadcast(const std::string& of_rank_0) const {
    std::uint64_t bytes = of_rank_0.size();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(&bytes, 1, MPI_UINT64_T, 0, comm_, &request);
    wait(request);
    std::string text = of_rank_0;
    text.resize(bytes);
    MPI_Bcast(text.data(), static_cast<int>(bytes), MPI_CHAR, 0, comm_);
    return text;
}

bool Team::all(bool mine) const { return least(mine ? 1 : 0) > 0; }

}  // namespace bench
