#include "cli/codec_trials.hpp"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "world/real/memory.hpp"

namespace cairn::cli {

namespace {

constexpr std::size_t run_bytes = 1 << 20;

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

// False where the run does not come back.
bool add(CodecTrial& sum, Codec codec, ByteView raw, const std::vector<NumberArray>& arrays, ByteView older) {
    Bytes stored(raw.size() - raw.size() / 16), back(raw.size());
    std::uint64_t bytes = 0;
    Base base{older};
    sum.encode_s += seconds_of([&] { bytes = encode(codec, raw, arrays, stored, &base); });
    sum.raw_bytes += static_cast<double>(raw.size());
    sum.stored_bytes += static_cast<double>(bytes == 0 ? raw.size() : bytes);
    if (bytes == 0) return true;
    Status status;
    sum.decode_s += seconds_of([&] { status = decode(codec, ByteView(stored).first(bytes), back, older); });
    sum.decoded_bytes += static_cast<double>(raw.size());
    return status.ok() && std::memcmp(back.data(), raw.data(), raw.size()) == 0;
}

}  // namespace

Status append_file(SampleImage& image, const std::string& path, const Describers& describers) {
    TRY_ASSIGN(const BufferPtr file, map_file(path, false, [](const std::function<void()>& unmap) { unmap(); }));
    const ByteView bytes(file->data(), file->size());
    const Result<Description> description = describe_file({path, bytes, path, 0}, describers);
    if (description.ok()) {
        for (NumberArray array : arrays_of(description->extents, describers.names)) {
            array.offset += image.bytes.size();
            image.arrays.push_back(array);
        }
        image.described_bytes += description->described_bytes();
    }
    image.bytes.insert(image.bytes.end(), bytes.begin(), bytes.end());
    if (file->has_lost_bytes()) return Status(Code::io_error, path + ": became shorter while it was read, or the disk does not give it");
    return {};
}

Result<CodecTrial> try_codec(const SampleImage& image, Codec codec, bool is_told, ByteView base) {
    CodecTrial sum;
    for (std::size_t at = 0; at < image.bytes.size(); at += run_bytes) {
        const std::size_t length = std::min(run_bytes, image.bytes.size() - at);
        const std::vector<NumberArray> arrays = is_told ? within(image.arrays, at, length) : std::vector<NumberArray>();
        if (!add(sum, codec, ByteView(image.bytes).subspan(at, length), arrays, base.empty() ? base : base.subspan(at, length))) return corrupt("what " + std::string(codec_name(codec)) + " encoded does not come back");
    }
    return sum;
}

double durable_s(const CodecTrial& trial, double raw_bytes, double storage_bytes_per_s, unsigned threads) {
    const double write_s = raw_bytes / trial.ratio() / storage_bytes_per_s;
    return trial.encode_s > 0 ? std::max(write_s, raw_bytes / (threads * trial.encode_bytes_per_s())) : write_s;
}

}  // namespace cairn::cli
