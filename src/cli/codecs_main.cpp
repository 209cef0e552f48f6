// What each codec makes of files, by folder: `make bench-codecs ARGS='FOLDER...'`. The files of a folder are one image, one after the other by name, as `cairn watch` makes it of a node's, and are
// encoded in runs of 1 MiB, as chunks of an image are; codecs that make use of it are told of the arrays that the files describe, and are not. One thread, in seconds of its processor. Bytes that a codec leaves are counted as
// they are, and for the time that it took to find that out.
//
// Exit code: 0; 1 where a folder has no file, can not be read, or what was encoded does not come back.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>

#include "base/text_table.hpp"
#include "codec/codec.hpp"
#include "describe/file.hpp"
#include "describe/hdf5_signature.hpp"
#include "describer/describer.hpp"

namespace cairn {
namespace {

constexpr std::size_t run_bytes = 1 << 20;

struct Sum {
    double raw_bytes = 0, stored_bytes = 0, encode_s = 0, decode_s = 0, decoded_bytes = 0;
};

// Of the processor: what else runs on the machine counts little.
double seconds_of(const std::function<void()>& work) {
    const auto now = [] {
        timespec time = {};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    const double begun = now();
    work();
    return now() - begun;
}

// False where a run does not come back.
bool add(Sum& sum, Codec codec, ByteView raw, const std::vector<NumberArray>& arrays) {
    Bytes stored(raw.size() - raw.size() / 16), back(raw.size());
    std::uint64_t bytes = 0;
    sum.encode_s += seconds_of([&] { bytes = encode(codec, raw, arrays, stored); });
    sum.raw_bytes += static_cast<double>(raw.size());
    sum.stored_bytes += static_cast<double>(bytes == 0 ? raw.size() : bytes);
    if (bytes == 0) return true;
    Status status;
    sum.decode_s += seconds_of([&] { status = decode(codec, ByteView(stored).first(bytes), back); });
    sum.decoded_bytes += static_cast<double>(raw.size());
    return status.ok() && std::memcmp(back.data(), raw.data(), raw.size()) == 0;
}

struct Image {
    Bytes bytes;
    std::vector<NumberArray> arrays;
    std::uint64_t described_bytes = 0;
};

void append(Image& image, const std::string& path, Describer& describer) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const ByteView bytes = as_bytes(text);
    const Result<Description> description = hdf5_begins(bytes) ? describer.describe(path, 0, bytes.size(), std::chrono::seconds(30)) : describe_file(bytes);
    const std::vector<NumberArray> arrays = description.ok() ? arrays_of(description->extents) : std::vector<NumberArray>();
    for (NumberArray array : arrays) {
        array.offset += image.bytes.size();
        image.arrays.push_back(array);
    }
    image.described_bytes += description.ok() ? description->described_bytes() : 0;
    image.bytes.insert(image.bytes.end(), bytes.begin(), bytes.end());
}

// As `cairn watch` makes it of the files of a node: one after the other, by name.
Image image_of(const std::string& folder, Describer& describer) {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    Image image;
    for (const std::string& path : paths) append(image, path, describer);
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
constexpr Row rows[] = {{Codec::zero_runs, false}, {Codec::numbers, false}, {Codec::planes, false}, {Codec::planes, true}};

// Nothing where what was encoded does not come back.
std::optional<Sum> sum_of(const Image& image, const Row& row) {
    Sum sum;
    for (std::size_t at = 0; at < image.bytes.size(); at += run_bytes) {
        const std::size_t length = std::min(run_bytes, image.bytes.size() - at);
        const std::vector<NumberArray> arrays = row.is_told ? within(image.arrays, at, length) : std::vector<NumberArray>();
        if (!add(sum, row.codec, ByteView(image.bytes).subspan(at, length), arrays)) return std::nullopt;
    }
    return sum;
}

int run(const std::vector<std::string>& folders) {
    TextTable table({left("files of"), right("MB"), right("described"), left("codec"), right("ratio"), right("encode MB/s"), right("decode MB/s")});
    Describer describer(describer_program());
    for (const std::string& folder : folders) {
        const Image image = image_of(folder, describer);
        if (image.bytes.empty()) {
            std::fprintf(stderr, "%s: no file with bytes\n", folder.c_str());
            return 1;
        }
        const double bytes = static_cast<double>(image.bytes.size());
        for (const Row& row : rows) {
            const std::optional<Sum> sum = sum_of(image, row);
            if (!sum) {
                std::fprintf(stderr, "%s: what %s encoded does not come back\n", folder.c_str(), std::string(codec_name(row.codec)).c_str());
                return 1;
            }
            table.add({std::filesystem::path(folder).filename().string(), number(bytes / 1e6, "%.1f"), row.is_told ? number(100 * static_cast<double>(image.described_bytes) / bytes, "%.1f %%") : "-",
                       std::string(codec_name(row.codec)), number(sum->raw_bytes / sum->stored_bytes, "%.3f"), number(sum->raw_bytes / 1e6 / sum->encode_s, "%.0f"),
                       sum->decode_s > 0 ? number(sum->decoded_bytes / 1e6 / sum->decode_s, "%.0f") : "-"});
        }
    }
    std::printf("%s", table.to_string().c_str());
    return 0;
}

}  // namespace
}  // namespace cairn

int main(int count, char** arguments) {
    if (count < 2) {
        std::fprintf(stderr, "usage: cairn_codecs FOLDER...     what each codec makes of the files below each of them\n");
        return 2;
    }
    try {
        return cairn::run({arguments + 1, arguments + count});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cairn_codecs: %s\n", error.what());
        return 1;
    }
}
