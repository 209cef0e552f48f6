// cairn_bench: one measured run, an MPI application of the installed interfaces. The script `run` in this folder starts it once for each
// setting and makes the tables; by hand: mpirun -n 8 cairn_bench --phase checkpoint --name x --directory d --nodes 4 --size 67108864 --out o.json
//
//   --phase checkpoint   versions 1, 2, ...: each is captured, flushed and then, from scratch, restored once at the end. Between them, in
//                        the same rounds, plain copies and plain writes of the same bytes, so that what disturbs one disturbs all.
//                        --plain 0 leaves these out, and the memory they need.
//   --phase restore      a new session restores what the other phase committed, again and again, with plain reads between.
//
// Writes --out: seconds of every round, never averages. Exit code 3: what was restored is not what was checkpointed.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "image.hpp"
#include "options.hpp"
#include "plain.hpp"
#include "session.hpp"
#include "team.hpp"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

// The most anonymous memory this process has while Cairn works for it, above what it had before.
class Sampler {
  public:
    Sampler() : before_(anonymous_bytes()), thread_([this] { watch(); }) {}
    ~Sampler() {
        end_ = true;
        thread_.join();
    }
    std::uint64_t above() const { return peak_ > before_ ? peak_ - before_ : 0; }

  private:
    void watch() {
        while (!end_) {
            peak_ = std::max(peak_.load(), anonymous_bytes());
            ::usleep(20'000);
        }
    }
    std::uint64_t before_;
    std::atomic<std::uint64_t> peak_{0};
    std::atomic<bool> end_{false};
    std::thread thread_;
};

class Bench {
  public:
    Bench(const Team& team, const Options& options)
        : team_(team),
          options_(options),
          bytes_(image_bytes(options.number("size", 64u << 20), options.real("imbalance", 0), options.number("seed", 1), team.rank())),
          image_(bytes_, options.number("seed", 1), team.rank()),
          with_plain_(options.number("plain", 1) != 0),
          copy_(with_plain_ ? bytes_ : 8),
          plain_{team, image_.memory(), options.text("directory"), options.number("chunk", 8u << 20)},
          rounds_(static_cast<int>(options.number("rounds", 4))),
          session_(team, image_) {
        total_ = team.sum(bytes_);
        result_["image_bytes"] = team.gather(static_cast<double>(bytes_));
        result_["bytes"] = total_;
        sampler_.emplace();
    }

    // Exit code.
    int run() {
        open();
        const bool same = options_.text("phase") == "restore" ? restore_phase() : checkpoint_phase();
        session_.close();
        const auto client = static_cast<std::uint64_t>(team_.most(static_cast<double>(sampler_->above())));
        result_["client_anonymous_bytes"] = client;
        result_["restored_same"] = same;
        if (team_.rank() == 0) {
            std::ofstream file(options_.text("out"));
            file << result_.dump(1) << "\n";
            if (!file.flush()) fail("can not write " + options_.text("out"));
        }
        team_.meet();
        return same ? 0 : 3;
    }

  private:
    void open() {
        const std::uint64_t nodes = options_.number("nodes", 0);
        const auto rank = static_cast<std::uint64_t>(team_.rank()), ranks = static_cast<std::uint64_t>(team_.ranks());
        const std::string node = nodes == 0 ? "" : "n" + std::to_string(nodes * rank / ranks);
        result_["open_s"] = session_.open_s({options_.text("name", "bench"), options_.text("persistent"), node});
    }

    void record(const char* what, double seconds) { result_["seconds"][what].push_back(seconds); }

    bool checkpoint_phase() {
        const auto writers = static_cast<int>(options_.number("plain-writers", 8)), files = static_cast<int>(options_.number("files", 1));
        const bool baselines = options_.number("baselines", 0) != 0;
        for (int round = 0; round < rounds_; ++round) {
            const std::uint64_t version = static_cast<std::uint64_t>(round) + 1;
            image_.write_version(version);
            if (with_plain_) record("memcpy", plain_.copy(copy_));
            if (with_plain_ && round < 2) record("fresh_memcpy", plain_.fresh_copy());
            ::usleep(static_cast<useconds_t>(1e6 * options_.real("lead", 0)));  // in which an application computes
            checkpoint(version);
            if (!with_plain_) continue;
            record("plain_write", plain_.write({writers, {}, {}, 0}));
            record("plain_write_files", plain_.write({files, {}, {}, 0}));
            if (!baselines || round < 2) continue;  // fresh slots are not what they are compared with
            record("file_per_rank", plain_.file_per_rank());
            record("shared_file", plain_.shared_file());
            record("collective", plain_.collective());
        }
        if (with_plain_) plain_.file_per_rank();
        return restore_rounds(static_cast<std::uint64_t>(rounds_));
    }

    void checkpoint(std::uint64_t version) {
        const CairnSession::Times times = session_.checkpoint(version);
        record("capture", times.capture_s);
        record("flush", times.flush_s);
    }

    bool restore_phase() {
        plain_.file_per_rank();
        return restore_rounds(session_.newest());
    }

    bool restore_rounds(std::uint64_t version) {
        bool same = true;
        for (int round = 0; round < static_cast<int>(options_.number("restores", 3)); ++round) {
            if (with_plain_) record("plain_read", plain_.read_back(copy_));
            const CairnSession::Restored restored = session_.restore(version);
            record("restore", restored.seconds);
            same = restored.same && same;
        }
        plain_.remove_kept();
        return same;
    }

    const Team& team_;
    const Options& options_;
    std::uint64_t bytes_;
    std::uint64_t total_ = 0;
    Image image_;
    bool with_plain_;
    WarmMemory copy_;
    PlainFiles plain_;
    int rounds_;
    CairnSession session_;
    std::optional<Sampler> sampler_;
    Json result_;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const bench::Options options(argc, argv);
    const bench::Team team(MPI_COMM_WORLD);
    if (options.text("out").empty() || options.text("directory").empty()) {
        if (team.rank() == 0) std::fprintf(stderr, "cairn_bench is started by the script bench/run; see bench/run --help\n");
        MPI_Finalize();
        return 2;
    }
    int code = 0;
    {
        bench::Bench bench(team, options);
        code = bench.run();
    }
    MPI_Finalize();
    return code;
}
