// Layout of what is encoded: whether it has a base, and that one's checksum; how many words follow; for each run its kind, seed, offset and length, or real bytes behind these four; then filler, a described
// sequence whose seed is drawn from all that.
#include "world/sim/encoding.hpp"

#include <cstring>

#include "base/checksum.hpp"
#include "world/sim/prng.hpp"

namespace cairn::sim {

namespace {

constexpr std::uint64_t magic = 0xC0DEC0DEC0DEC0DEull, magic_with_base = 0xC0DEBA5EC0DEBA5Eull;

void put_word(Bytes& bytes, std::uint64_t word) {
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof word);
    std::memcpy(&bytes[at], &word, sizeof word);
}

Bytes describe_runs(const Runs& raw) {
    Bytes told;
    for (const Run& run : raw) {
        put_word(told, static_cast<std::uint64_t>(run.kind));
        put_word(told, run.seed);
        put_word(told, run.kind == Run::Kind::described ? run.offset : 0);
        put_word(told, run.length);
        if (run.kind != Run::Kind::bytes) continue;
        const Bytes bytes = materialise({run});
        told.insert(told.end(), bytes.begin(), bytes.end());
    }
    return told;
}

Runs filler(const Bytes& told, std::uint64_t bytes) { return runs_of_description(mix(checksum(told)), 0, bytes); }

// Words and bytes from what was stored, as far as there are any.
class Told {
  public:
    explicit Told(const Runs& stored) : stored_(stored), left_(length_of(stored)) {}
    std::optional<Bytes> bytes(std::uint64_t count) {
        if (count > left_) return std::nullopt;
        Bytes taken = materialise(part_of(stored_, at_, count));
        at_ += count;
        left_ -= count;
        return taken;
    }
    std::optional<std::uint64_t> word() {
        const std::optional<Bytes> taken = bytes(sizeof(std::uint64_t));
        if (!taken) return std::nullopt;
        std::uint64_t word = 0;
        std::memcpy(&word, taken->data(), sizeof word);
        return word;
    }
    Runs rest() const { return part_of(stored_, at_, left_); }

  private:
    const Runs& stored_;
    std::uint64_t at_ = 0, left_;
};

}  // namespace

// The small effort takes five times as long, and makes a twentieth less (bench/results/codecs.txt).
KeyedEncoding keyed_encoding(const Coding& coding, const Runs& raw, const Model& model) {
    KeyedEncoding made{0, effort_of(coding.codec).value_or(Effort::fast), model.codec_rate, model.stored_min, model.stored_max};
    if (coding.codec == Codec::none) return made;
    double drawn = static_cast<double>(mix(checksum(describe_runs(coalesce(raw))) ^ 0x6B657973) >> 11) / static_cast<double>(1ull << 53);
    for (std::uint32_t i = 0; i < model.codec_keys.size() && made.key == 0; ++i) {
        const CodecKey& key = model.codec_keys[i];
        if ((drawn -= key.share) >= 0 && i + 1 < model.codec_keys.size()) continue;
        made.key = i + 1;
        made.rate = key.rate;
        made.stored_min = key.stored_min;
        made.stored_max = key.stored_max;
    }
    if (made.key != 0 && coding.keys) made.effort = effort_of(*coding.keys, made.key, made.effort);
    made.leaves = made.effort == Effort::none;
    if (made.leaves) made.rate = model.checksum_rate;  // a copy
    if (made.effort == Effort::small) {
        made.rate /= 5;
        made.stored_min *= 0.95;
        made.stored_max *= 0.95;
    }
    return made;
}

Runs encode_runs(const Runs& raw, const Runs& base, std::uint64_t bytes_max, double stored_min, double stored_max) {
    const Runs canonical = coalesce(raw);
    const Bytes told = describe_runs(canonical);
    const double drawn = static_cast<double>(mix(checksum(told)) >> 11) / static_cast<double>(1ull << 53);
    const double share = (stored_min + drawn * (stored_max - stored_min)) / (base.empty() ? 1 : 2);
    const auto bytes = static_cast<std::uint64_t>(static_cast<double>(length_of(raw)) * share);
    Bytes head;
    put_word(head, base.empty() ? magic : magic_with_base);
    if (!base.empty()) put_word(head, checksum_of(base));
    put_word(head, told.size());
    head.insert(head.end(), told.begin(), told.end());
    if (bytes > bytes_max || head.size() > bytes) return {};
    Runs stored = runs_of_bytes(head);
    for (Run& run : filler(told, bytes - head.size())) stored.push_back(std::move(run));
    return stored;
}

std::optional<Runs> decode_runs(const Runs& stored, const Runs& base, std::uint64_t raw_bytes) {
    Told from(stored);
    const auto begins = from.word();
    if (begins != magic && begins != magic_with_base) return std::nullopt;
    if (begins == magic_with_base && (base.empty() || from.word() != checksum_of(base))) return std::nullopt;
    const auto told_bytes = from.word();
    if (!told_bytes) return std::nullopt;
    const std::optional<Bytes> told = from.bytes(*told_bytes);
    if (!told || !equal(from.rest(), filler(*told, length_of(from.rest())))) return std::nullopt;
    const Runs inner = runs_of_bytes(*told);
    Told words(inner);
    Runs raw;
    while (const auto kind = words.word()) {
        const auto seed = words.word(), offset = words.word(), length = words.word();
        if (*kind > static_cast<std::uint64_t>(Run::Kind::bytes) || !length || *length > raw_bytes) return std::nullopt;
        Run run;
        run.kind = static_cast<Run::Kind>(*kind);
        run.seed = *seed;
        run.offset = *offset;
        run.length = *length;
        if (run.kind == Run::Kind::bytes) {
            const std::optional<Bytes> bytes = words.bytes(*length);
            if (!bytes) return std::nullopt;
            run = runs_of_bytes(*bytes).front();
        }
        raw.push_back(std::move(run));
    }
    return length_of(raw) == raw_bytes ? std::optional(raw) : std::nullopt;
}

}  // namespace cairn::sim
