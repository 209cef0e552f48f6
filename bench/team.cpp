#include "team.hpp"

#include <time.h>

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

Team::Team(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &ranks_);
    MPI_Comm here = MPI_COMM_NULL;
    int ranks_here = 0;
    MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &ranks_here);
    MPI_Comm_free(&here);
    one_host_ = all(ranks_here == ranks_);
}

void Team::meet() const {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm_, &request);
    for (;;) {
        int done = 0;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done) return;
        const timespec pause = {0, 200'000};
        ::nanosleep(&pause, nullptr);
    }
}

double Team::span_s(double begin, double end) const {
    return one_host_ ? most(end) - least(begin) : most(end - begin);
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

bool Team::all(bool mine) const { return least(mine ? 1 : 0) > 0; }

}  // namespace bench
