// What each codec makes of files, by folder: `make bench-codecs ARGS='FOLDER...'`. The files of a folder are one image, one after the other by name, as `cairn watch` makes it of a node's, and are
// encoded in runs of 1 MiB, as chunks of an image are; codecs that make use of it are told of the arrays that the files describe, and are not. One thread, in seconds of its processor. Bytes that a codec leaves are counted as
// they are, and for the time that it took to find that out.
//
// With --keys what choosing efforts key by key makes of them (codec_keys.hpp).
//
// With --base the codecs that take one are given what the same folder was in an older version, too.
//
// Exit code: 0; 1 where a folder has no file, can not be read, or what was encoded does not come back.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/text_table.hpp"
#include "cli/codec_keys.hpp"
#include "cli/codec_trials.hpp"
#include "describer/describer.hpp"

namespace cairn::cli {
namespace {

// The files of a folder, one after the other by name.
Result<SampleImage> image_of(const std::string& folder, const Describers& describers) {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    SampleImage image;
    for (const std::string& path : paths) TRY(append_file(image, path, describers));
    if (image.bytes() == 0) return not_found(folder + ": no file with bytes");
    return image;
}

std::string number(double value, const char* format) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

struct Row {
    Codec codec;
    bool is_told;  // of the arrays
};
constexpr std::uint64_t run_bytes = 1 << 20;
constexpr Row rows[] = {{Codec::zero_runs, false}, {Codec::numbers, false}, {Codec::planes, false}, {Codec::planes, true}, {Codec::planes_small, true}};

// Folders, and their older version; the latter empty: none.
struct Arguments {
    std::vector<std::string> folders;
    std::string base;
};

Status add_rows(TextTable& table, const std::string& folder, const std::string& base_folder, const Describers& describers) {
    TRY_ASSIGN(const SampleImage image, image_of(folder, describers));
    SampleImage base;
    const bool has_base = !base_folder.empty();
    if (has_base) {
        TRY_ASSIGN(base, image_of(base_folder, describers));
        if (base.bytes() != image.bytes()) return invalid_argument("has not as many bytes as " + base_folder);
    }
    const double bytes = static_cast<double>(image.bytes());
    for (const Row& row : rows) {
        TrialInput input{{&image, 1}};
        if (has_base && takes_base(row.codec)) input.base = {&base, 1};
        TRY_ASSIGN(const CodecTrial trial, try_codec(input, runs_of(image.bytes(), run_bytes), {row.codec, row.is_told}));
        table.add({std::filesystem::path(folder).filename().string(), number(bytes / 1e6, "%.1f"), row.is_told ? number(100 * static_cast<double>(image.described_bytes()) / bytes, "%.1f %%") : "-",
                   !has_base || !takes_base(row.codec) ? "-" : std::filesystem::path(base_folder).filename().string(), std::string(codec_name(row.codec)), number(trial.ratio(), "%.3f"), number(trial.encode_bytes_per_s() / 1e6, "%.0f"),
                   trial.decode_s > 0 ? number(trial.decode_bytes_per_s() / 1e6, "%.0f") : "-"});
    }
    return {};
}

Status run(const Arguments& arguments) {
    TextTable table({left("files of"), right("MB"), right("described"), left("base"), left("codec"), right("ratio"), right("encode MB/s"), right("decode MB/s")});
    Describer describer(describer_program());
    const Describers describers{[&](const std::string& path, std::uint64_t offset, std::uint64_t length) { return describer.describe(path, offset, length, std::chrono::seconds(30)); }, {}};
    for (const std::string& folder : arguments.folders) TRY(add_rows(table, folder, arguments.base, describers).within(folder));
    std::printf("%s", table.to_string().c_str());
    return {};
}

// Choices key by key, instead of the table of codecs.
Status run_keys(const std::vector<std::string>& folders) {
    TextTable keys = key_table(), schemes = scheme_table();
    Describer describer(describer_program());
    const Describers describers{[&](const std::string& path, std::uint64_t offset, std::uint64_t length) { return describer.describe(path, offset, length, std::chrono::seconds(30)); }, {}};
    for (const std::string& folder : folders) {
        TRY_ASSIGN(const SampleImage image, image_of(folder, describers));
        const std::string name = std::filesystem::path(folder).filename().string();
        add_key_rows(keys, name, image);
        add_scheme_row(schemes, name, image);
    }
    std::printf("%s\n%s", keys.to_string().c_str(), schemes.to_string().c_str());
    return {};
}

}  // namespace
}  // namespace cairn::cli

int main(int count, char** arguments) {
    const bool by_key = count > 2 && std::string_view(arguments[1]) == "--keys";
    const bool has_base = count > 2 && std::string_view(arguments[1]) == "--base";
    const cairn::cli::Arguments given{{arguments + (has_base ? 3 : by_key ? 2 : 1), arguments + count}, has_base ? arguments[2] : ""};
    if (given.folders.empty()) {
        std::fprintf(stderr, "usage: cairn_codecs [--base FOLDER] FOLDER...     what each codec makes of the files below each of them\n"
                             "       cairn_codecs --keys FOLDER...              what choosing key by key does\n");
        return 2;
    }
    try {
        const cairn::Status status = by_key ? cairn::cli::run_keys(given.folders) : cairn::cli::run(given);
        if (!status.ok()) std::fprintf(stderr, "cairn_codecs: %s\n", status.text().c_str());
        return status.ok() ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cairn_codecs: %s\n", error.what());
        return 1;
    }
}
