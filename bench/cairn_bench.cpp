// cairn_bench: one measured run, an MPI application of the installed interfaces. The script `run` in this folder starts it once for each
// setting and makes the tables; by hand: mpirun -n 8 cairn_bench --phase checkpoint --name x --directory d --nodes 4 --size 67108864 --out o.json
//
//   --phase checkpoint   versions 1, 2, ...: each is captured, flushed and then, from scratch, restored once at the end. Between them, in
//                        the same rounds, plain copies and plain writes of the same bytes, so that what disturbs one disturbs all.
//                        --plain 0 leaves these out, and the memory they need.
//   --phase restore      a new session restores what the other phase committed, again and again, with plain reads between.
//
// Writes --out: seconds of every round, never averages. Exit code 3: what was restored is not what was checkpointed.
#include <cairn/cairn_mpi.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "image.hpp"
#include "plain.hpp"
#include "team.hpp"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint64_t wait_ms = 600'000;

class Options {
  public:
    Options(int argc, char** argv) {
        for (int i = 1; i + 1 < argc; i += 2) values_[argv[i]] = argv[i + 1];
    }
    std::string text(const std::string& key, const std::string& otherwise = "") const {
        const auto found = values_.find("--" + key);
        return found == values_.end() ? otherwise : found->second;
    }
    std::uint64_t number(const std::string& key, std::uint64_t otherwise) const {
        const std::string value = text(key);
        return value.empty() ? otherwise : std::strtoull(value.c_str(), nullptr, 10);
    }
    double real(const std::string& key, double otherwise) const {
        const std::string value = text(key);
        return value.empty() ? otherwise : std::strtod(value.c_str(), nullptr);
    }

  private:
    std::map<std::string, std::string> values_;
};

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
          rounds_(static_cast<int>(options.number("rounds", 4))) {
        total_ = team.sum(bytes_);
        result_["image_bytes"] = team.gather(static_cast<double>(bytes_));
        result_["bytes"] = total_;
        sampler_.emplace();
    }

    // Exit code.
    int run() {
        open();
        const bool same = options_.text("phase") == "restore" ? restore_phase() : checkpoint_phase();
        check(cairn_close(session_), "closing");
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
    void check(int code, const std::string& what) const {
        if (code == CAIRN_OK) return;
        const std::string who = "rank " + std::to_string(team_.rank()) + ": ";
        fail(who + what + ": " + cairn_status_name(code) + ": " + cairn_last_error(session_));
    }

    void open() {
        const std::uint64_t nodes = options_.number("nodes", 0);
        const auto rank = static_cast<std::uint64_t>(team_.rank()), ranks = static_cast<std::uint64_t>(team_.ranks());
        const std::string name = options_.text("name", "bench"), node = "n" + std::to_string(nodes * rank / ranks);
        cairn_options open = CAIRN_OPTIONS;
        open.name = name.c_str();
        open.node = nodes == 0 ? nullptr : node.c_str();
        const double begin = now_s();
        check(cairn_open_mpi(MPI_COMM_WORLD, &open, &session_), "opening");
        result_["open_s"] = team_.span_s(begin, now_s());
        const std::uint64_t shape[] = {bytes_ / 8};
        check(cairn_protect(session_, "image", image_.memory().data(), CAIRN_U64, 1, shape), "protecting");
    }

    void record(const char* what, double seconds) { result_["seconds"][what].push_back(seconds); }

    bool checkpoint_phase() {
        const auto writers = static_cast<int>(options_.number("plain-writers", 8));
        const bool baselines = options_.number("baselines", 0) != 0;
        for (int round = 0; round < rounds_; ++round) {
            const std::uint64_t version = static_cast<std::uint64_t>(round) + 1;
            image_.write_version(version);
            if (with_plain_) record("memcpy", plain_.copy(copy_));
            checkpoint(version);
            if (!with_plain_) continue;
            record("plain_write", plain_.write(writers));
            if (!baselines || round < 2) continue;  // fresh slots are not what they are compared with
            record("file_per_rank", plain_.file_per_rank());
            record("shared_file", plain_.shared_file());
            record("collective", plain_.collective());
        }
        if (with_plain_) plain_.file_per_rank();
        return restore_rounds(static_cast<std::uint64_t>(rounds_));
    }

    void checkpoint(std::uint64_t version) {
        team_.meet();
        const double begin = now_s();
        check(cairn_checkpoint(session_, version), "checkpoint");
        const double sealed = now_s();
        check(cairn_wait(session_, version, CAIRN_COMMITTED, wait_ms), "waiting for the commit");
        const double committed = now_s();
        record("capture", team_.span_s(begin, sealed));
        const double last_seal = team_.most(sealed);
        record("flush", team_.least(committed) - last_seal);
        settle(version - 1);
    }

    // The daemons remove the older version after the commit: not while something else is measured.
    void settle(std::uint64_t older) {
        if (team_.rank() == 0 && older > 0 && older > never_went_) {
            const std::string path = options_.text("persistent") + "/" + options_.text("name", "bench") + "/" + std::to_string(older);
            const double until = now_s() + 5;
            while (::access(path.c_str(), F_OK) == 0 && now_s() < until) ::usleep(2000);
            if (::access(path.c_str(), F_OK) == 0) never_went_ = UINT64_MAX;  // retention does not work: no use to wait again
        }
        team_.meet();
    }

    bool restore_phase() {
        plain_.file_per_rank();
        std::uint64_t newest = 0;
        check(cairn_newest(session_, &newest), "asking for the newest version");
        return restore_rounds(newest);
    }

    bool restore_rounds(std::uint64_t version) {
        bool same = true;
        for (int round = 0; round < static_cast<int>(options_.number("restores", 3)); ++round) {
            if (with_plain_) record("plain_read", plain_.read_back(copy_));
            image_.spoil();
            team_.meet();
            const double begin = now_s();
            std::uint64_t restored = 0;
            check(cairn_restore(session_, version, &restored), "restoring");
            record("restore", team_.span_s(begin, now_s()));
            if (const char* warnings = cairn_warnings(session_); *warnings) std::fprintf(stderr, "%s", warnings);
            const std::string wrong = image_.differs(restored);
            if (!wrong.empty())
                std::fprintf(stderr, "cairn_bench: rank %d: restored data differs from version %llu at %s\n", team_.rank(),
                             static_cast<unsigned long long>(restored), wrong.c_str());
            same = team_.all(wrong.empty() && restored == version) && same;
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
    std::uint64_t never_went_ = 0;
    cairn_session* session_ = nullptr;
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
