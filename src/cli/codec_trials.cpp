#include "cli/codec_trials.hpp"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "model/keys_seen.hpp"

namespace cairn::cli {

namespace {

// Of a footer, some: FORMAT.md, "Footer".
constexpr double piece_bytes = 30, checksum_bytes = 8;

std::uint64_t thread_ns() {
    timespec time = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

double seconds_since(std::uint64_t begun_ns) { return 1e-9 * static_cast<double>(thread_ns() - begun_ns); }

// One trial: the buffers of its runs, and its sums.
class Trial {
  public:
    Trial(const TrialInput& input, const Method& method) : input_(input), method_(method) {}

    // False: the run does not come back.
    bool add(const Pack& run) {
        const std::uint64_t raw_bytes = bytes_of(run);
        std::uint64_t stored_bytes = raw_bytes, units = 0;
        if (method_.codec != Codec::none) {
            const std::vector<NumberArray> arrays = gather(run, raw_bytes);
            const std::optional<std::uint64_t> made = encode_run(arrays, base_of(run));
            if (!made) return false;
            if (*made > 0) stored_bytes = *made;
        }
        for (const NodeSource& piece : run) units += div_up(piece.source.length, input_.block_bytes);
        ++sum_.runs;
        sum_.raw_bytes += static_cast<double>(raw_bytes);
        sum_.stored_bytes += static_cast<double>(stored_bytes);
        sum_.part_bytes += static_cast<double>(round_up(stored_bytes, part_alignment)) + piece_bytes * static_cast<double>(run.size()) + checksum_bytes * static_cast<double>(units);
        return true;
    }
    const CodecTrial& sum() const { return sum_; }
    CodecTrial result() {
        for (const auto& [of, row] : keys_) sum_.keys.push_back(row);
        return std::move(sum_);
    }

  private:
    // The run's bytes into raw_, and what is known of them.
    std::vector<NumberArray> gather(const Pack& run, std::uint64_t raw_bytes) {
        raw_.resize(raw_bytes);
        std::vector<NumberArray> arrays;
        std::uint64_t at = 0;
        for (const NodeSource& piece : run) {
            const Source& source = piece.source;
            const SampleImage& image = input_.images[source.rank];
            image.copy(source.image_offset, std::span(raw_).subspan(at, source.length));
            if (method_.is_told)
                for (NumberArray& array : within(image.arrays(), source.image_offset, source.length)) {
                    array.offset += at;
                    arrays.push_back(array);
                }
            at += source.length;
        }
        return arrays;
    }
    ByteView base_of(const Pack& run) {
        if (input_.base.empty()) return {};
        base_.resize(raw_.size());
        std::uint64_t at = 0;
        for (const NodeSource& piece : run) {
            input_.base[piece.source.rank].copy(piece.source.image_offset, std::span(base_).subspan(at, piece.source.length));
            at += piece.source.length;
        }
        return base_;
    }
    // What raw_ takes; 0: it is left as it is; nothing: it does not come back.
    std::optional<std::uint64_t> encode_run(const std::vector<NumberArray>& arrays, ByteView older) {
        stored_.resize(raw_.size() - raw_.size() / 16);
        Base base{older};
        ByKey keys{&method_.efforts, thread_ns};
        const std::uint64_t begun = thread_ns();
        const std::uint64_t bytes = encode(method_.codec, raw_, arrays, stored_, &base, &keys);
        const std::uint64_t took_ns = thread_ns() - begun;
        sum_.encode_s += 1e-9 * static_cast<double>(took_ns);
        if (const std::optional<Effort> effort = effort_of(method_.codec)) note_keys({0, *effort, raw_.size(), bytes == 0 ? raw_.size() : bytes, took_ns}, keys.seen);
        if (bytes == 0) return std::uint64_t{0};
        back_.resize(raw_.size());
        const std::uint64_t decoding = thread_ns();
        const Status status = decode(method_.codec, ByteView(stored_).first(bytes), back_, older);
        sum_.decode_s += seconds_since(decoding);
        sum_.decoded_bytes += static_cast<double>(raw_.size());
        if (!status.ok() || std::memcmp(back_.data(), raw_.data(), raw_.size()) != 0) return std::nullopt;
        return bytes;
    }

    void note_keys(const KeyEncoded& all, const std::vector<KeyEncoded>& seen) {
        KeysSeen run;
        run.add(all, seen);
        for (const KeyEncoded& each : run.all()) {
            KeyEncoded& row = keys_.try_emplace({each.key, each.effort}, KeyEncoded{each.key, each.effort, 0, 0, 0}).first->second;
            row.raw_bytes += each.raw_bytes;
            row.stored_bytes += each.stored_bytes;
            row.took_ns += each.took_ns;
        }
    }

    const TrialInput& input_;
    const Method& method_;
    CodecTrial sum_;
    std::map<std::pair<std::uint32_t, Effort>, KeyEncoded> keys_;
    Bytes raw_, stored_, back_, base_;
};

}  // namespace

NextRun runs_of(std::uint64_t image_bytes, std::uint64_t run_bytes) {
    return [=](const CodecTrial& so_far) -> Pack {
        const auto at = static_cast<std::uint64_t>(so_far.raw_bytes);
        if (at == image_bytes) return {};
        return {{0, {0, at, std::min(run_bytes, image_bytes - at)}}};
    };
}

Result<CodecTrial> try_codec(const TrialInput& input, const NextRun& next, const Method& method, const std::function<void(std::uint64_t)>& tell) {
    Trial trial(input, method);
    for (Pack run = next(trial.sum()); !run.empty(); run = next(trial.sum())) {
        if (!trial.add(run)) return corrupt("what " + std::string(codec_name(method.codec)) + " encoded does not come back");
        if (tell) tell(static_cast<std::uint64_t>(trial.sum().raw_bytes));
    }
    return trial.result();
}

double durable_s(const CodecTrial& trial, double raw_bytes, double storage_bytes_per_s, unsigned threads) {
    const double write_s = raw_bytes / trial.part_ratio() / storage_bytes_per_s;
    return trial.encode_s > 0 ? std::max(write_s, raw_bytes / (threads * trial.encode_bytes_per_s())) : write_s;
}

}  // namespace cairn::cli
