// Heat on a plate, kept by Cairn through its C++ interface: examples/heat in C++, with the same options, arithmetic and
// last line.
//
//     mpirun -n 4 heat_cpp [--steps 1000] [--every 100] [--rows 512] [--columns 512] [--pause-ms 0] [--name heat]
//
// What is different to show more of the interface: the step is a protected value of its own instead of the version's
// number, and a history of means is kept through callbacks, because its size changes.
#include <cairn/cairn.hpp>
// after it, to have cairn::open_mpi
#include <cairn/cairn_mpi.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

class Plate {
  public:
    Plate(std::uint64_t all_rows, std::uint64_t columns, int rank, int ranks)
        : rank_(rank),
          ranks_(ranks),
          columns_(columns),
          rows_(all_rows / static_cast<std::uint64_t>(ranks) +
                (static_cast<std::uint64_t>(rank) < all_rows % static_cast<std::uint64_t>(ranks))),
          now_((rows_ + 2) * columns),
          next_(now_.size()) {
        if (rank == 0) std::fill_n(now_.begin(), columns, 100.0);  // the hot edge above row 1
    }

    void step() {
        exchange_edges();
        for (std::uint64_t r = 1; r <= rows_; ++r)
            for (std::uint64_t c = 1; c + 1 < columns_; ++c) {
                const double* at = now_.data() + r * columns_ + c;
                next_[r * columns_ + c] =
                    0.25 * (at[-1] + at[1] + at[-static_cast<std::ptrdiff_t>(columns_)] + at[columns_]);
            }
        for (std::uint64_t r = 1; r <= rows_; ++r)
            std::memcpy(&now_[r * columns_ + 1], &next_[r * columns_ + 1], (columns_ - 2) * sizeof(double));
    }
    double mean() const {
        double sum = 0;
        for (const double each : inner()) sum += each;
        return sum / static_cast<double>(rows_ * columns_);
    }
    // FNV-1a over all ranks' rows in order, as examples/heat prints it.
    std::uint64_t checksum() const {
        std::uint64_t hash = 14695981039346656037u;
        MPI_Recv(&hash, 1, MPI_UINT64_T, rank_ > 0 ? rank_ - 1 : MPI_PROC_NULL, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (const std::byte each : std::as_bytes(inner()))
            hash = (hash ^ static_cast<std::uint64_t>(each)) * 1099511628211u;
        MPI_Send(&hash, 1, MPI_UINT64_T, rank_ + 1 < ranks_ ? rank_ + 1 : MPI_PROC_NULL, 2, MPI_COMM_WORLD);
        MPI_Bcast(&hash, 1, MPI_UINT64_T, ranks_ - 1, MPI_COMM_WORLD);
        return hash;
    }
    std::span<double> all() { return now_; }
    std::uint64_t bands() const { return rows_ + 2; }

  private:
    std::span<const double> inner() const { return std::span(now_).subspan(columns_, rows_ * columns_); }
    void exchange_edges() {
        const int up = rank_ > 0 ? rank_ - 1 : MPI_PROC_NULL, down = rank_ + 1 < ranks_ ? rank_ + 1 : MPI_PROC_NULL;
        const int n = static_cast<int>(columns_);
        MPI_Sendrecv(&now_[columns_], n, MPI_DOUBLE, up, 0, &now_[(rows_ + 1) * columns_], n, MPI_DOUBLE, down, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&now_[rows_ * columns_], n, MPI_DOUBLE, down, 1, now_.data(), n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }

    int rank_, ranks_;
    std::uint64_t columns_, rows_;
    std::vector<double> now_, next_;
};

cairn::Callbacks kept_by_callbacks(std::vector<double>& values) {
    return {.size = [&] { return values.size() * sizeof(double); },
            .write =
                [&](std::span<std::byte> into) {
                    std::memcpy(into.data(), values.data(), into.size());
                    return true;
                },
            .read =
                [&](std::span<const std::byte> from) {
                    values.resize(from.size() / sizeof(double));
                    std::memcpy(values.data(), from.data(), values.size() * sizeof(double));
                    return from.size() % sizeof(double) == 0;
                }};
}

int fail(int rank, const char* what, const cairn::Status& status) {
    std::fprintf(stderr, "heat_cpp: rank %d: %s: %s\n", rank, what, status.text().c_str());
    return MPI_Abort(MPI_COMM_WORLD, 1);
}

int run(int rank, int ranks, std::map<std::string, std::uint64_t> options, const std::string& name) {
    Plate plate(options["--rows"], options["--columns"], rank, ranks);
    std::vector<double> history;
    std::uint64_t at = 0;

    auto session = cairn::open_mpi(MPI_COMM_WORLD, {.name = name});
    if (!session) return fail(rank, "open", session.status());
    for (const auto& status :
         {session->protect("plate", plate.all(), {plate.bands(), options["--columns"]}),
          session->protect_value("step", at), session->protect_callbacks("history", kept_by_callbacks(history))})
        if (!status) return fail(rank, "protect", status);

    const auto restored = session->restore();
    if (!restored && restored.code() != CAIRN_NOT_FOUND) return fail(rank, "restore", restored.status());
    if (rank == 0) {
        std::fputs(session->warnings().c_str(), stderr);
        std::printf("heat_cpp: %s step %llu\n", restored ? "goes on after" : "starts at",
                    static_cast<unsigned long long>(at));
        std::fflush(stdout);
    }

    double waited_s = 0;
    cairn::Version newest = 0;
    while (at < options["--steps"]) {
        plate.step();
        ++at;
        std::this_thread::sleep_for(std::chrono::milliseconds(options["--pause-ms"]));
        if (at % options["--every"] != 0) continue;
        history.push_back(plate.mean());
        const double begin = MPI_Wtime();
        if (const auto status = session->checkpoint(at))
            newest = at;
        else
            std::fprintf(stderr, "heat_cpp: rank %d: checkpoint %llu: %s\n", rank, static_cast<unsigned long long>(at),
                         status.text().c_str());
        waited_s += MPI_Wtime() - begin;
    }

    const std::uint64_t sum = plate.checksum();
    if (newest != 0)
        if (const auto status = session->wait(newest, cairn::Level::committed, std::chrono::minutes(1)); !status)
            std::fprintf(stderr, "heat_cpp: rank %d: not committed: %s\n", rank, status.text().c_str());
    if (rank == 0)
        std::printf(
            "heat_cpp: %d ranks waited %.3f s for checkpoints\nheat_cpp: %zu means kept\nheat_cpp: step %llu checksum "
            "%016llx\n",
            ranks, waited_s, history.size(), static_cast<unsigned long long>(at), static_cast<unsigned long long>(sum));
    return session->close() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::map<std::string, std::uint64_t> options{
        {"--steps", 1000}, {"--every", 100}, {"--rows", 512}, {"--columns", 512}, {"--pause-ms", 0}};
    std::string name = "heat_cpp";
    bool understood = argc % 2 == 1;
    for (int i = 1; understood && i + 1 < argc; i += 2) {
        if (std::string(argv[i]) == "--name")
            name = argv[i + 1];
        else if (const auto found = options.find(argv[i]); found != options.end())
            found->second = std::strtoull(argv[i + 1], nullptr, 10);
        else
            understood = false;
    }
    understood = understood && options["--every"] > 0 && options["--columns"] > 2;
    const int code =
        understood ? run(rank, ranks, options, name)
                   : fail(rank, "usage",
                          {CAIRN_INVALID_ARGUMENT,
                           "heat_cpp [--steps N] [--every N] [--rows N] [--columns N] [--pause-ms N] [--name NAME]"});
    MPI_Finalize();
    return code;
}
