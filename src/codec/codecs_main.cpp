// What each codec makes of files, by folder: `make bench-codecs ARGS='FOLDER...'`. A folder given is one row; its files are read whole, one after the other, and each is encoded in runs of 1 MiB,
// as chunks of an image are. Where FILE.arrays stands beside a file (bench/h5arrays), codecs are told of its arrays. One thread. Bytes that a codec leaves are counted as they are, and for the time that it took to find that out.
//
// Exit code: 0; 1 where a folder has no file, can not be read, or what was encoded does not come back.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "base/text_table.hpp"
#include "codec/codec.hpp"

namespace cairn {
namespace {

constexpr std::size_t run_bytes = 1 << 20;

struct Sum {
    double raw_bytes = 0, stored_bytes = 0, encode_s = 0, decode_s = 0, decoded_bytes = 0;
};

double seconds_of(const std::function<void()>& work) {
    const auto begun = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
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

struct File {
    Bytes bytes;
    std::vector<NumberArray> arrays;
};

std::vector<NumberArray> arrays_in(const std::string& path) {
    std::vector<NumberArray> arrays;
    std::ifstream file(path);
    NumberArray array;
    unsigned width = 0;
    char kind = 0, order = 0;
    while (file >> array.offset >> array.length >> width >> kind >> order >> array.row >> array.plane) {
        array.width = static_cast<std::uint8_t>(width);
        array.is_float = kind == 'f';
        array.is_swapped = order == '>';
        arrays.push_back(array);
    }
    return arrays;
}

std::vector<File> files_of(const std::string& folder) {
    std::vector<File> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file() || entry.path().extension() == ".arrays") continue;
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        if (!text.empty()) files.push_back({to_bytes(text), arrays_in(entry.path().string() + ".arrays")});
    }
    return files;
}

std::string number(double value, const char* format) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

int run(const std::vector<std::string>& folders) {
    TextTable table({left("files of"), right("MB"), left("codec"), right("ratio"), right("encode MB/s"), right("decode MB/s")});
    for (const std::string& folder : folders) {
        const std::vector<File> files = files_of(folder);
        if (files.empty()) {
            std::fprintf(stderr, "%s: no file with bytes\n", folder.c_str());
            return 1;
        }
        for (const Codec codec : {Codec::zero_runs, Codec::numbers, Codec::planes}) {
            Sum sum;
            for (const auto& [bytes, arrays] : files)
                for (std::size_t at = 0; at < bytes.size(); at += run_bytes) {
                    const std::size_t length = std::min(run_bytes, bytes.size() - at);
                    if (!add(sum, codec, ByteView(bytes).subspan(at, length), within(arrays, at, length))) {
                        std::fprintf(stderr, "%s: what %s encoded does not come back\n", folder.c_str(), std::string(codec_name(codec)).c_str());
                        return 1;
                    }
                }
            table.add({std::filesystem::path(folder).filename().string(), number(sum.raw_bytes / 1e6, "%.1f"), std::string(codec_name(codec)),
                       number(sum.raw_bytes / sum.stored_bytes, "%.3f"), number(sum.raw_bytes / 1e6 / sum.encode_s, "%.0f"),
                       sum.decode_s > 0 ? number(sum.decoded_bytes / 1e6 / sum.decode_s, "%.0f") : "-"});
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
