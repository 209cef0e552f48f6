#include "tune/tuner.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <numeric>
#include <set>
#include <thread>

#include "base/units.hpp"
#include "daemon/memory.hpp"
#include "daemon/options.hpp"
#include "storage/detect.hpp"

namespace cairn::tune {

namespace {

constexpr std::uint64_t size_least = 256 << 10, size_first = 2 << 20, size_most = 1ull << 30;
constexpr double runs_wanted = 150;
constexpr double figure_rounds_wanted = 2.5;
constexpr double run_s_least = 0.15;      // below that start and end weigh too much
constexpr double memory_share_max = 0.5;  // of what is available

// What the two edges of a campaign share: run by run through here.
class BenchRunner final : public Runner {
  public:
    BenchRunner(Bench& bench, const std::string& target) : bench_(bench), target_(target) {}
    Nanos now() const override { return bench_.loop().now(); }
    // Somebody else may have filled the file system meanwhile.
    Result<Measured> run(const Variant& variant, std::uint32_t followers) override {
        TRY_ASSIGN(const Room room, room_at(target_));
        TRY(check_room(target_, room, bench_.local_bytes(bench_.file_bytes()) * (1 + followers), 2, "a run writes"));
        Result<Measured> measured = bench_.run(variant, followers);
        if (!measured.ok() && measured.code() != Code::cancelled)
            return std::move(measured).status().within("a run with " + whole_text(variant) + " failed");
        return measured;
    }

  private:
    Bench& bench_;
    const std::string& target_;
};

class Tuning {
  public:
    explicit Tuning(TuneOptions options) : options_(std::move(options)) {}
    Result<TuneReport> run();

  private:
    Status look();
    Status check_any_room() const;
    void tell_rounded();
    Status choose_levels();
    Status make_bench();
    Status fit_levels();
    Status choose_direct();
    Status choose_io();
    void find_storage_targets();
    std::uint64_t buffers_bytes() const;
    Status check_rooms(std::uint64_t file_bytes) const;
    double wanted_run_s() const;
    Status choose_size();
    Result<double> try_size(std::uint64_t file_bytes);
    // Of the runs that there will be: others than the first are for figures.
    std::uint32_t followers_most() const {
        return options_.figures ? *std::max_element(options_.followers.begin(), options_.followers.end()) : options_.followers.front();
    }
    void tell(const std::string& what);

    TuneOptions options_;
    TuneReport report_;
    DaemonOptions daemon_;
    std::optional<OwnDirectory> target_, scratch_;
    std::unique_ptr<Bench> bench_;
    Nanos began_ = 0;
};

void Tuning::tell(const std::string& what) {
    const double passed = static_cast<double>(bench_->loop().now() - began_), all = static_cast<double>(options_.budget);
    options_.tell(what, std::min(1.0, passed / all), std::max(0.0, all - passed) / second);
}

// ---- before anything is written ----

Status Tuning::look() {
    for (const auto& [directory, named_by] : {std::pair{options_.target, "paths.persistent, --persistent"}, {options_.scratch, "paths.scratch, --scratch"}}) {
        std::error_code error;
        const bool is_directory = std::filesystem::is_directory(directory, error);
        if (error) return Status::from_errno(error.value(), directory + " (" + named_by + ") can not be used");
        if (!is_directory) return invalid_argument(directory + " (" + named_by + ") is not a directory");
        TRY_ASSIGN(const std::vector<std::string> removed, remove_leftovers(directory));
        for (const std::string& path : removed) report_.notes.push_back("removed " + path + ", which a run left that was killed");
    }
    return {};
}

// For the smallest runs at least: whoever has none is told so, and not by the first thing that fails.
Status Tuning::check_any_room() const {
    return check_rooms(options_.file_bytes != 0 ? options_.file_bytes : size_least);
}

// As cairnd would have it, but that nothing gives way: whoever tunes wants to know what storage takes, and not what else runs here.
Status Tuning::make_bench() {
    TRY_ASSIGN(OwnDirectory target, OwnDirectory::make(options_.target));
    target_.emplace(std::move(target));
    TRY_ASSIGN(OwnDirectory scratch, OwnDirectory::make(options_.scratch));
    scratch_.emplace(std::move(scratch));
    BenchOptions options;
    options.target = target_->path();
    options.scratch = scratch_->path();
    options.files_local = options_.files_local;
    options.seed = options_.seed;
    options.flush = daemon_.flush;
    options.flush.codec = Codec::none;  // what a codec makes of images that were made up says nothing: `cairn tune --codecs` asks files
    options.flush.codecs.clear();
    options.cpu_threads = daemon_.world.cpu_threads;
    options.memory_bytes_max = buffers_bytes();
    options.stop = [this] {
        tell("");
        return options_.stop();
    };
    TRY_ASSIGN(bench_, Bench::create(std::move(options)));
    began_ = bench_->loop().now();
    report_.present = variant_of(options_.settings, bench_->has_uring());
    return {};
}

// ---- what is tried ----

Status Tuning::choose_levels() {
    TRY_ASSIGN(daemon_, daemon_options(options_.settings, {}));
    report_.cores = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::uint64_t>& files = options_.levels[Factor::files];
    const std::uint64_t images = options_.files_local * (1ull + *std::min_element(options_.followers.begin(), options_.followers.end()));
    for (const std::uint64_t count : files)
        if (count > images)
            return invalid_argument(std::to_string(count) + " files are more than the " + std::to_string(images) +
                                    " images of a run (--files, --local-files, --followers)");
    for (const Factor factor : factors)
        if (options_.levels[factor].empty() && factor != Factor::uring && factor != Factor::direct)
            options_.levels[factor] = default_levels(factor, report_.cores);
    std::erase_if(files, [&](std::uint64_t count) { return count > images; });
    std::sort(options_.levels[Factor::writers].begin(), options_.levels[Factor::writers].end());
    return {};
}

Status Tuning::choose_io() {
    std::vector<std::uint64_t>& levels = options_.levels[Factor::uring];
    const bool asked = !levels.empty();
    if (!asked) levels = default_levels(Factor::uring, report_.cores);
    if (bench_->has_uring()) return {};
    const std::string why = "io_uring is not to be had: " + bench_->uring_reason();
    if (asked && std::find(levels.begin(), levels.end(), 1) != levels.end()) return Status(Code::unsupported, why + " (--io)");
    std::erase(levels, 1u);
    report_.present.uring = false;
    report_.notes.push_back(why + "; left out");
    return {};
}

Status Tuning::choose_direct() {
    std::vector<std::uint64_t>& levels = options_.levels[Factor::direct];
    const bool asked = !levels.empty();
    if (!asked) levels = default_levels(Factor::direct, report_.cores);
    TRY_ASSIGN(const DirectProbe probe, probe_direct(target_->path()));
    if (probe.direct == Direct::works) return {};
    const std::string why = options_.target + ": no direct I/O: " + probe.text;
    if (probe.direct == Direct::wrong) return Status(Code::io_error, why + ". Do not keep checkpoints there");
    if (asked && std::find(levels.begin(), levels.end(), 1) != levels.end()) return Status(Code::unsupported, why + " (--direct)");
    std::erase(levels, 1u);
    report_.present.direct = false;
    report_.notes.push_back(why + "; left out");
    return {};
}

// As the daemon: parts go round the storage targets where these can be chosen, and where the file system puts them elsewhere.
void Tuning::find_storage_targets() {
    const Result<PlacementTargets> found = detect_targets(daemon_.targets_driver, daemon_.targets, target_->path());
    if (found.ok() && found->names.empty()) return;
    const bool is_usual = found.code() == Code::unavailable && options_.settings.placement.driver == Settings::TargetsDriver::automatic;
    if (found.ok()) report_.notes.push_back("storage targets: " + names_text(found->names));
    else if (!is_usual) report_.notes.push_back("no storage targets: " + found.status().text());
    if (found.ok()) bench_->set_targets(*found);
}

// What depends on this machine and on this file system.
Status Tuning::fit_levels() {
    find_storage_targets();
    TRY(choose_io());
    TRY(choose_direct());
    if (!options_.levels[Factor::files].empty()) report_.present.files = static_cast<std::uint32_t>(options_.levels[Factor::files].front());
    tell_rounded();
    report_.present = normal(report_.present);
    return {};
}

// A buffer holds whole blocks, one at least.
void Tuning::tell_rounded() {
    std::set<std::uint64_t> buffers{report_.present.buffer_bytes}, blocks{report_.present.block_bytes};
    buffers.insert(options_.levels[Factor::buffer_bytes].begin(), options_.levels[Factor::buffer_bytes].end());
    blocks.insert(options_.levels[Factor::block_bytes].begin(), options_.levels[Factor::block_bytes].end());
    for (const std::uint64_t buffer : buffers) {
        std::string rounded;
        for (const std::uint64_t block : blocks) {
            Variant tried = report_.present;
            tried.buffer_bytes = buffer;
            tried.block_bytes = block;
            tried = normal(tried);
            if (tried.buffer_bytes != buffer)
                rounded += (rounded.empty() ? "" : ", ") + format_bytes(tried.buffer_bytes) + " with blocks of " + format_bytes(block);
        }
        if (!rounded.empty()) report_.notes.push_back("buffers of " + format_bytes(buffer) + " hold whole blocks: tried as " + rounded);
    }
}

// ---- how large a run is ----

std::uint64_t Tuning::buffers_bytes() const {
    std::uint64_t largest = std::max(options_.settings.flush.buffer_bytes, options_.settings.flush.block_bytes);
    for (const std::uint64_t bytes : options_.levels[Factor::buffer_bytes]) largest = std::max(largest, bytes);
    for (const std::uint64_t bytes : options_.levels[Factor::block_bytes]) largest = std::max(largest, bytes);
    return largest * daemon_.flush.buffers;
}

Status Tuning::check_rooms(std::uint64_t file_bytes) const {
    const std::vector<std::uint64_t> images = image_sizes(options_.files_local, options_.seed, file_bytes);
    const std::uint64_t local = std::accumulate(images.begin(), images.end(), std::uint64_t{0}), slots = local + local / 128;
    const bool shared = same_file_system(options_.target, options_.scratch);
    TRY_ASSIGN(const Room target, room_at(options_.target));
    TRY(check_room(options_.target, target, local * (1 + followers_most()) + (shared ? slots / 2 : 0), 2, "a run writes"));
    TRY_ASSIGN(const Room scratch, room_at(options_.scratch));
    TRY(check_room(options_.scratch, scratch, slots, 1, "local files take"));
    const Result<std::uint64_t> memory = available_memory_bytes();
    if (!memory.ok()) return {};  // then nobody knows
    const auto allowed = static_cast<std::uint64_t>(static_cast<double>(*memory) * memory_share_max);
    // Scratch may be in memory, too.
    const std::uint64_t needed = buffers_bytes() + *std::max_element(images.begin(), images.end()) + local;
    if (needed <= allowed) return {};
    return Status(Code::out_of_space, "buffers, local files and received data need " + format_bytes(needed) + " of memory, and half of what is available is " +
                                          format_bytes(allowed) + ": ask for less (--size, --local-files, --buffer), or set flush.buffers");
}

// Seconds that a run with the present settings takes, cold starts apart.
Result<double> Tuning::try_size(std::uint64_t file_bytes) {
    tell("finding the size of a run");
    TRY(bench_->prepare(file_bytes, began_ + options_.budget));
    BenchRunner runner(*bench_, options_.target);
    double took_s = 0;
    for (int i = 0; i < 2; ++i) {
        TRY_ASSIGN(const Measured measured, runner.run(report_.present, options_.followers.front()));
        took_s = measured.wall_s;
    }
    return took_s;
}

// Of a run with the present settings, so that enough of them fit.
double Tuning::wanted_run_s() const {
    const double budget_s = static_cast<double>(options_.budget) / second;
    if (!options_.figures) return budget_s / runs_wanted;
    double runs = 0;  // of one round of all figures, each as long as its bytes make it
    for (const std::uint32_t followers : options_.followers)
        for (const std::uint64_t files : options_.levels[Factor::files])
            for (const std::uint64_t writers : options_.levels[Factor::writers])
                runs += writers < files ? 0 : 3.0 * (1 + followers) / (1 + options_.followers.front());
    return budget_s * figures_share / std::max(runs_wanted, figure_rounds_wanted * runs);
}

// Tries larger and larger ones, until a run is long enough or there is no room for more.
Status Tuning::choose_size() {
    if (options_.file_bytes != 0) {
        TRY(check_rooms(options_.file_bytes));
        return bench_->prepare(options_.file_bytes, began_ + options_.budget);
    }
    std::uint64_t size = size_first;
    Status fits = check_rooms(size);
    for (; !fits.ok() && size > size_least; fits = check_rooms(size)) size /= 2;
    if (!fits.ok()) return fits;
    const double wanted_s = std::max(run_s_least, wanted_run_s());
    for (;;) {
        TRY_ASSIGN(const double took_s, try_size(size));
        const double passed = static_cast<double>(bench_->loop().now() - began_) / static_cast<double>(options_.budget);
        if (took_s >= wanted_s / 2 || size >= size_most || passed > 0.1) return {};
        auto next = static_cast<std::uint64_t>(static_cast<double>(size) * std::clamp(wanted_s / took_s, 1.5, 8.0)) >> 18 << 18;
        next = std::min(next, size_most);
        while (next > size && !check_rooms(next).ok()) next = next / 2;
        if (next <= size) return {};
        size = next;
    }
}

// ---- all of it ----

Result<TuneReport> Tuning::run() {
    TRY(look());
    TRY(choose_levels());
    TRY(check_any_room());
    TRY(make_bench());
    TRY(fit_levels());
    TRY(choose_size());
    report_.file_bytes = bench_->file_bytes();
    report_.local_bytes = bench_->local_bytes(report_.file_bytes);
    CampaignOptions campaign;
    campaign.present = report_.present;
    campaign.levels = options_.levels;
    campaign.followers = options_.followers;
    campaign.durable = options_.durable;
    campaign.figures = options_.figures;
    campaign.ends = began_ + options_.budget;
    campaign.seed = options_.seed;
    campaign.tell = [this](Stage stage, const Variant& next) { tell(std::string(stage_name(stage)) + ": " + difference_text(next, report_.present)); };
    BenchRunner runner(*bench_, options_.target);
    report_.campaign = std::make_unique<Campaign>(std::move(campaign), runner);
    TRY(report_.campaign->run());
    report_.took_s = static_cast<double>(bench_->loop().now() - began_) / second;
    bench_.reset();
    TRY(target_->remove());
    TRY(scratch_->remove());
    return std::move(report_);
}

}  // namespace

std::vector<std::uint64_t> default_levels(Factor factor, unsigned cores) {
    constexpr std::uint64_t kib = 1 << 10, mib = 1 << 20;
    switch (factor) {
        case Factor::writers: {
            std::vector<std::uint64_t> levels;
            for (std::uint64_t writers = 1; writers <= std::max<std::uint64_t>(16, 2 * std::bit_ceil(std::uint64_t{cores})) && writers <= 256; writers *= 2)
                levels.push_back(writers);
            return levels;
        }
        case Factor::placement: return {0, 1, 2};
        case Factor::local_split: return {0, 1};
        case Factor::files: return {1, 4, 8};
        case Factor::buffer_bytes: return {4 * mib, 16 * mib, 64 * mib};
        case Factor::block_bytes: return {256 * kib, 1 * mib, 4 * mib};
        case Factor::direct:
        case Factor::uring: return {0, 1};
    }
    return {};
}

Result<TuneReport> tune(TuneOptions options) { return Tuning(std::move(options)).run(); }

}  // namespace cairn::tune
