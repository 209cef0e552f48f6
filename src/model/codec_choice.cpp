#include "model/codec_choice.hpp"

#include <algorithm>

namespace cairn {

namespace {
constexpr double kept = 0.75;          // of what was seen before, at each look
constexpr double reached_first = 0.9;  // of what is expected of a codec that was not used yet: encoding begins before writing, and ends before it
constexpr double reached_least = 0.2, reached_most = 2;  // more than all: a codec is told by what it did last, which may be its worst
constexpr double forgotten_first = 8;  // versions, in which what held a codec back is forgotten; twice as many each time that it was tried in vain
constexpr double forgotten_most = 512;
constexpr double small = 0.25;         // of the largest version lately: what it takes is mostly latency
constexpr double worth = 1.05;         // a change of codec, by what is expected
constexpr double worth_cold = 1.5;     // after the first version: its memory, connections and files were cold, and storage seemed slower than it is
constexpr double storage_binds = 0.8;  // writes were under way for so much of the time
constexpr std::uint64_t unseen_most = 128;  // versions with a codec, each counted as unseen() says: storage may be faster than it was
constexpr double promising = 0.9;  // of the rate of storage: a codec of which less is expected is not about to be chosen
constexpr std::uint64_t trials_apart_most = 16;
constexpr double encoding_binds = 0.5;  // threads encoded for so much of the time: storage may have waited for them
constexpr double told_first = 0.75;  // of the first trial; of later ones what came late is told with the next
constexpr double worth_efforts = 1.03, as_soon = 0.995, much_less = 0.9;  // a change of what each key is worth

// Where writes were under way nearly all the time, storage was most likely what bound; but writers that wait for an answer each look the same.
std::uint64_t unseen(const FlushMeasured& flush) {
    return flush.storage_share >= storage_binds ? 1 : 4;
}

// Of the time of all threads that encode, where leaders told.
double encoding_share(const FlushMeasured& flush) {
    double took_s = 0;
    for (const KeyEncoded& each : flush.keys) took_s += static_cast<double>(each.took_ns) * 1e-9;
    return flush.encoders > 0 ? took_s / flush.encoders / flush.took_s : 0;
}
}  // namespace

void CodecSeen::add(std::uint64_t raw_bytes, std::uint64_t stored_bytes, double took_s) {
    if (raw_bytes == 0 || took_s <= 0) return;
    raw_bytes_ = kept * raw_bytes_ + static_cast<double>(raw_bytes);
    stored_bytes_ = kept * stored_bytes_ + static_cast<double>(stored_bytes);
    took_s_ = kept * took_s_ + took_s;
}

CodecChoice::CodecChoice(const std::vector<CodecCandidate>& codecs, double soon_s) : soon_s_(soon_s) {
    for (const CodecCandidate& each : codecs) {
        codecs_.push_back(each.codec);
        Known& known = known_[each.codec];
        known.effort = each.effort;
        known.reached = reached_first;
        known.forgotten = forgotten_first;
    }
}

const KeyEfforts& CodecChoice::efforts() const {
    static const KeyEfforts none;
    return next_.empty() ? none : known_.at(next_).efforts;
}

// The one that was looked at longest ago, of those that the version itself does not look at. What was not worth a codec's time once may be.
std::string CodecChoice::trial() const {
    std::string oldest;
    if (versions_ < trial_due_ || is_soon()) return oldest;
    if (!efforts().empty() && versions_ >= whole_tried_ + whole_tried_apart) return next_;
    for (const std::string& codec : codecs_)
        if (codec != next_ && (oldest.empty() || known_.at(codec).at < known_.at(oldest).at)) oldest = codec;
    return oldest;
}

// Raw bytes a second that become durable. Of what is known key by key, since a trial sees a few keys; where data have none of what was seen last.
double CodecChoice::expected(const Known& known, const KeyEfforts& efforts) const {
    if (known.effort && encoders_ > 0 && keys_.knows_keys()) {
        const std::optional<Made> made = keys_.made(*known.effort, efforts, shorter_);
        if (made) return known.reached * Speeds{encoders_, storage_bytes_per_s_}.durable(*made);
    }
    if (known.bytes_per_s == 0) return 0;
    return known.reached * std::min(known.bytes_per_s, shorter_ * known.ratio * storage_bytes_per_s_);
}

void CodecChoice::learn_storage(const FlushMeasured& flush) {
    const double rate = static_cast<double>(flush.stored_bytes) / flush.took_s;
    if (flush.codec.empty()) {
        storage_bytes_per_s_ = std::max(rate, storage_before_);
        storage_before_ = rate;
    } else if (rate > storage_bytes_per_s_ || (flush.storage_share >= storage_binds && encoding_share(flush) < encoding_binds)) {
        storage_bytes_per_s_ = storage_before_ = rate;
    }
}

void CodecChoice::learn_keys(const FlushMeasured& flush) {
    const auto used = known_.find(flush.codec);
    keys_.record(flush.keys, used == known_.end() ? std::nullopt : used->second.effort, flush.efforts, flush.shorter);
    encoders_ = flush.encoders;
}

// How much of what is expected a codec holds in use. Those that work on keys as they are told are one, with one word for what is told nowhere.
void CodecChoice::learn_reached(const FlushMeasured& flush) {
    const auto used = known_.find(flush.codec);
    std::optional<double> reached;
    if (used != known_.end()) {
        Known& known = used->second;
        known.at = versions_;
        known.reached = 1;
        shorter_ = flush.shorter;
        const double full = expected(known, flush.efforts);
        if (full > 0) known.reached = std::clamp(static_cast<double>(flush.raw_bytes) / flush.took_s / full, reached_least, reached_most);
        if (known.effort && keys_.knows_keys()) reached = known.reached;
    }
    for (auto& [codec, known] : known_) {
        if (codec == flush.codec) continue;
        if (reached && known.effort) known.reached = *reached;
        else known.reached += (reached_first - known.reached) / known.forgotten;  // what held it back may be over
    }
}

void CodecChoice::record(const FlushMeasured& flush) {
    learn_keys(flush);  // what a codec makes of data is so, however long all of it took
    if (flush.raw_bytes == 0 || flush.took_s <= 0 || flush.is_held_back) return;
    const auto raw_bytes = static_cast<double>(flush.raw_bytes);
    largest_ = std::max(raw_bytes, kept * largest_);
    if (raw_bytes < small * largest_) return;
    ++versions_;
    for (const auto& [codec, measured] : flush.codecs) {
        const auto known = known_.find(codec);
        if (known == known_.end() || measured.raw_bytes <= 0 || measured.stored_bytes <= 0 || measured.raw_bytes_per_s <= 0) continue;
        known->second.ratio = measured.raw_bytes / measured.stored_bytes / flush.shorter;
        known->second.bytes_per_s = measured.raw_bytes_per_s;
        known->second.at = versions_;
    }
    if (!flush.efforts.empty() && versions_ > whole_tried_ + whole_tried_apart) whole_tried_ = versions_;  // this one had a trial
    learn_storage(flush);
    unseen_ = flush.codec.empty() ? 0 : unseen_ + unseen(flush);
    learn_reached(flush);
    shorter_ = flush.next_shorter;
    for (auto& [codec, known] : known_) choose_efforts(known, codec == next_);
    if (versions_ > 1 || flush.told >= told_first) choose();
    if (!none_is_promising()) {
        trials_apart_ = 1;
        trial_due_ = versions_;
    } else if (versions_ > trial_due_) {  // this one had a trial
        trials_apart_ = std::min(2 * trials_apart_, trials_apart_most);
        trial_due_ = versions_ + trials_apart_ - 1;
    }
}

// What the version before had stays, where others promise hardly more, and hardly less of the processor.
void CodecChoice::choose_efforts(Known& known, bool is_present) const {
    if (!known.effort || encoders_ <= 0 || !keys_.knows_keys()) return;
    const Speeds speeds{encoders_, storage_bytes_per_s_};
    KeyEfforts best = keys_.best(*known.effort, speeds, shorter_);
    const std::optional<Made> now = keys_.made(*known.effort, known.efforts, shorter_), then = keys_.made(*known.effort, best, shorter_);
    if (!now || !then) return;
    const double sooner = speeds.durable(*then) / speeds.durable(*now);
    if (!is_present || sooner > worth_efforts || (sooner > as_soon && then->took_s < much_less * now->took_s)) known.efforts = std::move(best);
}

// What storage takes is seen with each version, and what codecs do is known: if storage gets slower, the next version may have one, trial or not.
bool CodecChoice::none_is_promising() const {
    return next_.empty() && std::all_of(known_.begin(), known_.end(), [&](const auto& each) {
        return each.second.bytes_per_s > 0 && expected(each.second) < promising * storage_bytes_per_s_;
    });
}

void CodecChoice::choose() {
    if (storage_bytes_per_s_ == 0) return;
    const auto rate_of = [&](const std::string& codec) { return codec.empty() ? storage_bytes_per_s_ : expected(known_.at(codec)); };
    const std::string present = next_;
    const double needed = rate_of(present) * (versions_ == 1 ? worth_cold : worth);
    std::string best = present;
    double best_rate = needed;
    const auto offer = [&](const std::string& codec) {
        if (codec == present || rate_of(codec) <= best_rate) return;
        best = codec;
        best_rate = rate_of(codec);
    };
    offer("");
    for (const std::string& codec : codecs_) offer(codec);
    if (!present.empty()) {
        double& forgotten = known_.at(present).forgotten;
        forgotten = best == present ? forgotten_first : std::min(2 * forgotten, forgotten_most);
    }
    if (unseen_ >= unseen_most || is_soon()) best.clear();
    next_ = best;
}

}  // namespace cairn
