#include "application.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <thread>

namespace bench {

namespace {

void sleep_ms(double ms) {
    const auto ns = static_cast<long>(ms * 1e6);
    const timespec pause = {ns / 1'000'000'000, ns % 1'000'000'000};
    ::nanosleep(&pause, nullptr);
}

template <std::size_t n>
void sleep_until_done(std::array<MPI_Request, n>& requests) {
    for (int done = 0; !done;) {
        MPI_Testall(static_cast<int>(n), requests.data(), &done, MPI_STATUSES_IGNORE);
        if (!done) sleep_ms(0.5);
    }
}

class Neighbours {
  public:
    Neighbours(const Team& team, int distance, std::uint64_t bytes) : team_(team), distance_(distance), bytes_(static_cast<int>(bytes)) {
        for (std::vector<char>& each : buffers_) each.assign(bytes, 1);
    }

    // To the next and to the one before, then a sum over all: what an iterative solver does after a step. Asleep while it waits. The sum comes
    // last: begun together with the rest it lets ranks drift apart until their exchanges miss each other, and a run takes a tenth less or more
    // time by whether they did.
    double exchange_s() {
        const double begin = now_s();
        const int ranks = team_.ranks(), next = (team_.rank() + distance_) % ranks, before = (team_.rank() + ranks - distance_ % ranks) % ranks;
        std::array<MPI_Request, 4> halos;
        MPI_Irecv(buffers_[0].data(), bytes_, MPI_CHAR, before, 1, team_.comm(), &halos[0]);
        MPI_Irecv(buffers_[1].data(), bytes_, MPI_CHAR, next, 2, team_.comm(), &halos[1]);
        MPI_Isend(buffers_[2].data(), bytes_, MPI_CHAR, next, 1, team_.comm(), &halos[2]);
        MPI_Isend(buffers_[3].data(), bytes_, MPI_CHAR, before, 2, team_.comm(), &halos[3]);
        sleep_until_done(halos);
        std::array<MPI_Request, 1> sum;
        MPI_Iallreduce(&norm_, &norms_, 1, MPI_DOUBLE, MPI_SUM, team_.comm(), &sum[0]);
        sleep_until_done(sum);
        return now_s() - begin;
    }

  private:
    const Team& team_;
    int distance_, bytes_;
    std::array<std::vector<char>, 4> buffers_;
    double norm_ = 1, norms_ = 0;
};

// What a solver's sweep is to processor and memory: reads and writes all of a field that no cache holds.
class Field {
  public:
    explicit Field(std::uint64_t work_bytes) : work_bytes_(work_bytes), values_(work_bytes == 0 ? 0 : (16u << 20) / sizeof(double), 1.0) {}
    double sweep_s() {
        const double begin = now_s();
        for (std::uint64_t done = 0; done < work_bytes_; done += 2 * values_.size() * sizeof(double))
            for (double& value : values_) value = value * 0.999 + 0.5;
        return now_s() - begin;
    }

  private:
    std::uint64_t work_bytes_;
    std::vector<double> values_;
};

// A file for each rank, written in the background from a copy.
class BackgroundFile {
  public:
    BackgroundFile(const PlainFiles& plain, const Image& image, const WarmMemory& copy) : plain_(plain), image_(image), copy_(copy) {}
    ~BackgroundFile() { wait(); }
    void checkpoint() {
        wait();
        std::memcpy(copy_.data(), image_.memory().data(), copy_.bytes());
        thread_ = std::thread([this] { plain_.write_own_file(copy_); });
    }
    void wait() {
        if (thread_.joinable()) thread_.join();
    }

  private:
    const PlainFiles& plain_;
    const Image& image_;
    const WarmMemory& copy_;
    std::thread thread_;
};

}  // namespace

ApplicationTimes run_application(const ApplicationPlan& plan, const Team& team, Image& image, const WarmMemory& copy, const PlainFiles& plain,
                                 CairnSession& cairn) {
    Neighbours neighbours(team, plan.distance, plan.message_bytes);
    BackgroundFile background(plain, image, copy);
    ApplicationTimes times;
    const auto checkpoint = [&] {
        const std::uint64_t version = plan.version + static_cast<std::uint64_t>(times.checkpoints++);
        if (plan.checkpoints == "cairn") {
            image.write_version(version);
            cairn.capture(version);
        } else if (plan.checkpoints == "file_per_rank")
            background.checkpoint();
        else if (plan.checkpoints == "collective") {
            PlainFiles files = plain;
            files.tag += '-' + std::to_string(version);
            files.collective(plan.files);
        } else {
            fail("there are no checkpoints called " + plan.checkpoints);
        }
    };
    Field field(plan.work_bytes);
    double blocked = 0, computed = 0;
    std::vector<double> exchanges;
    team.meet();
    team.meet();
    const double begin = now_s();
    for (int step = 0; step < plan.steps; ++step) {
        if (plan.checkpoints != "none" && step % plan.every == 0) {
            const double before = now_s();
            checkpoint();
            blocked += now_s() - before;
        }
        computed += field.sweep_s();
        sleep_ms(plan.step_ms);
        exchanges.push_back(neighbours.exchange_s());
    }
    const double end = now_s();
    times.run_s = team.span_s(begin, end);
    if (plan.checkpoints == "cairn" && times.checkpoints > 0) cairn.wait(plan.version + static_cast<std::uint64_t>(times.checkpoints) - 1);
    background.wait();
    times.finish_s = team.most(now_s()) - team.most(end);
    times.blocked_s = team.most(blocked);
    const auto mean = [&](double mine) {
        const std::vector<double> all = team.gather(mine);
        return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(std::max<std::size_t>(1, all.size()));
    };
    for (const double each : exchanges) {
        times.exchanges_s.push_back(mean(each));
        times.communicate_s += times.exchanges_s.back();
    }
    times.compute_s = mean(computed);
    plain.remove_kept();
    return times;
}

}  // namespace bench
