#include "cli/tune_codecs.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <ostream>
#include <thread>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/codec_report.hpp"
#include "cli/flush_runs.hpp"
#include "describer/describer.hpp"
#include "describer/rules_file.hpp"
#include "world/real/memory.hpp"

namespace cairn::cli {

namespace {

constexpr std::chrono::seconds describer_wait{30};
constexpr std::uint64_t sample_bytes_least = 1 << 20;

struct Sample {
    std::vector<SampleImage> images;
    SampleFacts facts;
};

// What is no file, or none any more, is told when it is mapped.
std::vector<std::uint64_t> sizes_of(const std::vector<std::string>& paths) {
    std::vector<std::uint64_t> sizes;
    for (const std::string& path : paths) {
        std::error_code error;
        const std::uintmax_t bytes = std::filesystem::file_size(path, error);
        sizes.push_back(error ? 0 : bytes);
    }
    return sizes;
}

Result<Sample> read_files(Console& console, const std::vector<std::string>& paths, bool are_ranks, std::uint64_t sample_bytes, const Settings& settings) {
    TRY_ASSIGN(auto rules, load_file_rules(settings.describe.rules));
    survive_lost_bytes();
    Describer describer(describer_program());
    const Describers describers{[&](const std::string& path, std::uint64_t offset, std::uint64_t length) { return describer.describe(path, offset, length, describer_wait); }, std::move(rules), static_cast<NameRule>(settings.describe.names)};
    const std::vector<std::uint64_t> sizes = sizes_of(paths), shares = sample_shares(sizes, sample_bytes);
    Sample sample;
    SampleFacts& facts = sample.facts;
    for (const std::uint64_t bytes : sizes) facts.file_bytes += bytes;
    Progress progress(console, "describe", facts.file_bytes);
    std::uint64_t described = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (sample.images.empty() || are_ranks) sample.images.emplace_back();
        TRY(append_file(sample.images.back(), paths[i], describers, shares[i] == sizes[i] ? UINT64_MAX : shares[i]));
        facts.files_left_out += shares[i] == 0 && sizes[i] > 0 ? 1 : 0;
        progress.set(described += sizes[i]);
    }
    for (const SampleImage& image : sample.images) {
        facts.bytes += image.bytes();
        facts.described_bytes += image.described_bytes();
    }
    facts.files = paths.size();
    facts.images = sample.images.size();
    facts.are_ranks = are_ranks;
    if (facts.bytes == 0) return invalid_argument("--codecs: the files have no bytes");
    return sample;
}

// Images that can share runs; where there are fewer than two `why` says what is in the way.
std::uint32_t images_to_merge(const Sample& sample, const Settings::Flush& flush, std::string& why) {
    const std::uint64_t least = std::min<std::uint64_t>(1 << 20, flush.buffer_bytes) / 2;
    const auto count = std::count_if(sample.images.begin(), sample.images.end(), [&](const SampleImage& image) { return image.bytes() >= least; });
    if (flush.placement != Settings::Placement::append) why = "flush.placement is not append";
    else if (flush.equal_pages) why = "flush.equal_pages is on";
    else if (flush.full_every > 1) why = "flush.full_every is above 1";
    else if (flush.layout == Settings::Layout::file_per_rank || flush.layout == Settings::Layout::safetensors) why = "flush.layout has a file for each rank, or stores nothing encoded";
    else if (count < 2) why = "images of less than " + format_bytes(least) + " share runs anyway, one after the other, and fewer than two are longer";
    return why.empty() ? static_cast<std::uint32_t>(count) : 0;
}

// Small samples take some milliseconds, and what else runs on the machine takes caches and clock rates away: the quickest of some.
Result<CodecTrial> quickest(const std::function<Result<CodecTrial>()>& try_once) {
    constexpr int repeats = 5;
    constexpr double enough_s = 0.5;
    Result<CodecTrial> best = try_once();
    double took_s = best.ok() ? best->encode_s : enough_s;
    for (int again = 1; again < repeats && took_s > 0 && took_s < enough_s; ++again) {
        Result<CodecTrial> next = try_once();
        if (!next.ok()) return next;
        took_s += next->encode_s;
        const double decode_s = std::min(best->decode_s, next->decode_s);
        if (next->encode_s < best->encode_s) best = std::move(next);
        best->decode_s = decode_s;
    }
    return best;
}

Result<SearchReport> search(Console& console, const Sample& sample, const SearchInput& input) {
    std::vector<std::uint64_t> lengths;
    for (const SampleImage& image : sample.images) lengths.push_back(image.bytes());
    const RunSettings today = run_settings(input.present, sample.facts.file_bytes, input.storage_bytes_per_s);
    Progress progress(console, "tune", trials_most(input) * sample.facts.bytes);
    std::uint64_t trials = 0, told = 0;
    const TryIt try_it = [&](const Combination& combination) {
        RunSettings runs = today;
        runs.block_bytes = combination.block_bytes;
        if (combination.merge_ranks > 1) runs.merge = merge_policy(runs, combination.merge_ranks, combination.merge_bytes);
        const std::uint64_t before = trials++ * sample.facts.bytes;
        return quickest([&] { return try_codec({sample.images, {}, runs.block_bytes}, flush_runs(lengths, runs), combination.method, [&](std::uint64_t bytes) { progress.set(told = std::max(told, before + bytes)); }); });
    };
    TRY_ASSIGN(SearchReport report, search_codecs(input, try_it));
    if (std::any_of(sample.images.begin(), sample.images.end(), [](const SampleImage& image) { return image.has_lost_bytes(); }))
        return Status(Code::io_error, "--codecs: a file became shorter while it was read, or the disk does not give it");
    return report;
}

// Bytes of an option; `what` says what it is.
Result<std::uint64_t> bytes_option(const Arguments& arguments, const std::string& option, std::uint64_t otherwise, std::uint64_t least, const std::string& what) {
    if (!arguments.given(option)) return otherwise;
    const Result<std::uint64_t> bytes = parse_bytes(arguments.text(option));
    if (!bytes.ok() || *bytes < least) return invalid_argument("--" + option + " '" + arguments.text(option) + "': " + what);
    return *bytes;
}

}  // namespace

Result<std::vector<ConfigChange>> tune_codecs(Console& console, const Arguments& arguments, const Settings& settings) {
    SearchInput input{settings.flush, 0, std::max(1u, std::thread::hardware_concurrency() / 2), 1};  // threads: as many as a daemon has
    TRY_ASSIGN(const std::uint64_t storage, bytes_option(arguments, "storage", 0, 1, "bytes a second that storage takes of one node, such as \"200 MB\""));
    TRY_ASSIGN(const std::uint64_t sample_bytes, bytes_option(arguments, "sample", sample_bytes_default, sample_bytes_least, "bytes to look at, 1 MiB at least"));
    input.storage_bytes_per_s = static_cast<double>(storage);
    const bool are_ranks = arguments.given("ranks");
    TRY_ASSIGN(Sample sample, read_files(console, arguments.texts("codecs"), are_ranks, sample_bytes, settings));
    if (are_ranks) input.images = images_to_merge(sample, settings.flush, sample.facts.unmerged);
    TRY_ASSIGN(const SearchReport report, search(console, sample, input));
    if (console.json) console.document(codecs_json(sample.facts, input, report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    else console.out << codecs_text(sample.facts, input, report);
    return report.changes;
}

}  // namespace cairn::cli
