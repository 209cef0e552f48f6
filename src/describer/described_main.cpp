// cairn_described PROGRAM FILE...: how much of HDF5 files cairn-describer describes, and how long that takes, by the clock and of the processor; one line for each folder that they are in. For who measures.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "describer/describer.hpp"

namespace {

using namespace cairn;
using Clock = std::chrono::steady_clock;

struct Sum {
    std::size_t files = 0, failed = 0, extents = 0;
    std::uint64_t bytes = 0, described = 0, numbers = 0;
    double seconds = 0, processor_s = 0;  // of the fastest of some rounds, for each file
    std::string first_failure;
};

// That the describing process had so far: beside others that want the same cores the clock tells of them, too.
double processor_s(pid_t child) {
    std::ifstream file("/proc/" + std::to_string(child) + "/schedstat");
    double nanoseconds = 0;
    file >> nanoseconds;
    return nanoseconds / 1e9;
}

void add(Sum& sum, Describer& describer, const std::filesystem::path& path) {
    const std::uint64_t bytes = std::filesystem::file_size(path);
    double fastest = 1e9, least = 1e9;
    ++sum.files;
    sum.bytes += bytes;
    for (int round = 0; round < 5; ++round) {
        const pid_t child = describer.child();  // 0 before the first
        const double before = processor_s(child);
        const auto began = Clock::now();
        const Result<Description> said = describer.describe(path, 0, bytes, std::chrono::seconds(10));
        fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - began).count());
        if (child != 0 && child == describer.child()) least = std::min(least, processor_s(child) - before);
        if (round > 0) continue;
        if (!said.ok()) {
            ++sum.failed;
            if (sum.first_failure.empty()) sum.first_failure = said.status().to_string();
            break;
        }
        sum.extents += said.value().extents.size();
        sum.described += said.value().described_bytes();
        for (const Extent& extent : said.value().extents) sum.numbers += extent.type == DataType::bytes ? 0 : extent.length;
    }
    sum.seconds += fastest;
    if (least < 1e9) sum.processor_s += least;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: cairn_described PROGRAM FILE...\n");
        return 2;
    }
    Describer describer(argv[1]);
    std::map<std::string, Sum> folders;
    for (int i = 2; i < argc; ++i) add(folders[std::filesystem::path(argv[i]).parent_path()], describer, argv[i]);
    for (const auto& [folder, sum] : folders) {
        const auto percent = [&](std::uint64_t bytes) { return 100.0 * static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(sum.bytes, 1)); };
        const auto files = static_cast<double>(sum.files), extents = static_cast<double>(std::max<std::size_t>(sum.extents, 1));
        std::printf("%s: %zu files (%zu failed), %.1f MB, described %.2f %% (numbers %.2f %%), %zu extents, %.3f ms a file, %.1f us an extent; of the processor %.3f ms, %.1f us\n", folder.c_str(), sum.files,
                    sum.failed, static_cast<double>(sum.bytes) / 1e6, percent(sum.described), percent(sum.numbers), sum.extents, 1e3 * sum.seconds / files, 1e6 * sum.seconds / extents, 1e3 * sum.processor_s / files,
                    1e6 * sum.processor_s / extents);
        if (!sum.first_failure.empty()) std::printf("  %s\n", sum.first_failure.c_str());
    }
    return 0;
}
