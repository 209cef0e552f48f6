// Which codec makes versions durable soonest: the coordinator's choice for each version, by what the versions before it showed. Pure functions of bytes and seconds.
//
// A flush is as fast as the slower of two: storage takes so many bytes a second, of which a codec leaves fewer; and the nodes encode so many a second. What storage takes is seen in versions
// without a codec. What a codec does is seen where it was used, and elsewhere on trial: with a version every leader encodes a piece of one chunk of its own images, and throws the result away.
// Which data it works on, and how hard, is chosen key by key (key_choice.hpp); in one of five versions the codec in use is tried on all of them, also those that it leaves.
// Where none promises nearly what storage takes without one, a trial with each version would be of no use to anybody: there are fewer then, and none of versions that are durable in a moment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/key_choice.hpp"

namespace cairn {

// What a codec did on one node lately: what is older counts less.
class CodecSeen {
  public:
    // `took_s`: of one thread. What could not be made shorter is as long as it was.
    void add(std::uint64_t raw_bytes, std::uint64_t stored_bytes, double took_s);
    double raw_bytes() const { return raw_bytes_; }
    double stored_bytes() const { return stored_bytes_; }
    double bytes_per_s() const { return took_s_ > 0 ? raw_bytes_ / took_s_ : 0; }  // of one thread; 0: nothing was seen

  private:
    double raw_bytes_ = 0, stored_bytes_ = 0, took_s_ = 0;
};

// The same of all leaders together, at one version.
struct CodecMeasured {
    double raw_bytes = 0, stored_bytes = 0;
    double raw_bytes_per_s = 0;  // that all their threads encode
};

// A codec that may be chosen, and how hard it works on what is told of nowhere; nothing: it makes no difference between keys.
struct CodecCandidate {
    std::string codec;
    std::optional<Effort> effort;
};

struct FlushMeasured {
    std::string codec;  // that the version was encoded with; empty: none
    std::uint64_t raw_bytes = 0, stored_bytes = 0;
    double took_s = 0;
    double storage_share = 0;  // of that time: some write was under way, at the leader of which that is most
    std::map<std::string, CodecMeasured> codecs;
    // How many times as long as it was stored a codec would have made it, had its images not shared runs; and what merging promises of the next version (model/merging.hpp).
    double shorter = 1, next_shorter = 1;
    KeyEfforts efforts;             // that the version was encoded with
    std::vector<KeyEncoded> keys;   // what all leaders told
    bool is_held_back = false;      // it gave way to the application: how long it took says nothing
    double encoders = 0;            // threads that encode at once, of all leaders together; 0: none said
    double told = 1;                // the share of the leaders whose trial, where there was one, had ended: the others' data are the slow ones
};

class CodecChoice {
  public:
    // Versions from one trial of the codec in use, on keys that are left as they are, to the next.
    static constexpr std::uint64_t whole_tried_apart = 4;
    CodecChoice() = default;  // of none
    // soon_s: a version that is durable so soon without a codec has none, and none is tried: what a trial takes is more than anybody would gain.
    explicit CodecChoice(const std::vector<CodecCandidate>& codecs, double soon_s = 0);
    // Of the next version; empty: none.
    const std::string& next() const { return next_; }
    // The keys whose arrays are not encoded as that codec would.
    const KeyEfforts& efforts() const;
    // What the next version should try on a chunk of each leader; empty: nothing.
    std::string trial() const;
    void record(const FlushMeasured& flush);

  private:
    struct Known {
        std::optional<Effort> effort;
        KeyEfforts efforts;  // with which it promises most
        double ratio = 1, bytes_per_s = 0;  // raw to stored, of what it encoded, had nothing been merged; that all nodes encode. 0: never seen
        double reached = 0;                 // of the rate that these two let expect, lately
        double forgotten = 0;               // versions in which it is forgotten that it reached less
        std::uint64_t at = 0;               // the version that tried it last
    };
    double expected(const Known& known, const KeyEfforts& efforts) const;
    double expected(const Known& known) const { return expected(known, known.efforts); }
    void choose_efforts(Known& known, bool is_present) const;
    void learn_storage(const FlushMeasured& flush);
    void learn_keys(const FlushMeasured& flush);
    void learn_reached(const FlushMeasured& flush);
    void choose();
    bool none_is_promising() const;
    bool is_soon() const { return largest_ < soon_s_ * storage_bytes_per_s_; }  // not before it is known what storage takes

    std::vector<std::string> codecs_;
    double soon_s_ = 0;
    std::map<std::string, Known> known_;
    KeyChoice keys_;
    double encoders_ = 0;
    std::string next_;
    double storage_bytes_per_s_ = 0, storage_before_ = 0;  // the better of the last two versions without a codec: noise only ever slows down
    double largest_ = 0;  // raw bytes of a version, lately
    double shorter_ = 1;  // FlushMeasured's, of the next version
    std::uint64_t versions_ = 0, unseen_ = 0;  // unseen_: what storage takes without a codec
    std::uint64_t whole_tried_ = 0;  // the last version that also tried, on all keys, the codec that it used
    std::uint64_t trial_due_ = 0, trials_apart_ = 1;  // of which version the next one is; versions from one to the next
};

}  // namespace cairn
