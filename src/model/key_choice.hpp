// Which arrays a codec should work on, and how hard: the coordinator's choice for each version, key by key (NumberArray::key), by what the versions before it showed. Pure functions of bytes and seconds.
//
// A flush is as fast as the slower of two, storage and encoding (codec_choice.hpp). Where encoding is slower, a key that takes long for what it saves is best left as it is, and one that saves much for
// little is not; where storage is slower, time is left to work harder. For each key the efforts are a choice of which one is taken, each costs time and saves bytes: the multiple-choice knapsack problem,
// of which Sinha and Zoltners (Operations Research, 1979) show that its linear relaxation is solved by taking steps along the convex hull of each choice, the steps that save most for their time first. So it is
// done here, until storage would wait for encoding. The step that does not fit any more is left out: where one key has most of the data that may be much.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "model/key_efforts.hpp"

namespace cairn {

// What is made of each raw byte of a version.
struct Made {
    double stored = 1;   // bytes
    double took_s = 0;   // of one thread
};

// How much can be done in a second, by all together.
struct Speeds {
    double encoders = 0;             // seconds of threads
    double stored_bytes_per_s = 0;   // that storage takes
    // Raw bytes that become durable.
    double durable(const Made& made) const {
        const double written = stored_bytes_per_s / made.stored;
        return made.took_s <= 0 ? written : std::min(written, encoders / made.took_s);
    }
};

class KeyChoice {
  public:
    // What the leaders of a version told. `used`: how hard the codec worked that it was encoded with, on all but the arrays of `efforts`; nothing: it had none, and all that was told is of trials. Only what was used
    // says how much of the data each key has, once anything was. `shorter`: merging made what is encoded so many times shorter, which is not the codec's (CodecChoice).
    void record(const std::vector<KeyEncoded>& seen, std::optional<Effort> used, const KeyEfforts& efforts = {}, double shorter = 1);
    // Whether any data have a key: else there is nothing to choose.
    bool knows_keys() const;
    // With this effort on all but the arrays of these keys, where merging makes what is encoded so many times shorter. Nothing where it was never seen on anything.
    std::optional<Made> made(Effort whole, const KeyEfforts& efforts, double shorter = 1) const;
    // The best efforts of the keys on which it differs from `whole`; at most keys_max, those of the most bytes.
    KeyEfforts best(Effort whole, const Speeds& speeds, double shorter = 1) const;

  private:
    struct Did {
        double raw = 0;  // bytes that it was seen on lately; 0: never seen
        Made made;       // of each of them, had nothing been merged
    };
    using DidBy = std::array<Did, efforts_count>;
    struct Known {
        double raw = 0;  // bytes lately, whatever was made of them
        DidBy by;
    };
    // What each effort makes of keys on which it was not seen.
    struct Means {
        std::array<std::optional<Made>, efforts_count> of;
        std::optional<Made> small_by_fast;  // of keys on which both were seen: how many times as much
    };
    struct Step {
        std::uint32_t key;
        Effort to;
        Made more;         // of a raw byte of the version: less stored, more time
        double worth = 0;  // what is saved, for each second
    };
    void follow_speed(const std::vector<KeyEncoded>& seen);
    Means means() const;
    static Made expected(const Known& known, Effort effort, const Means& means, double shorter);
    static std::vector<Step> steps_of(std::uint32_t key, const Known& known, double share, double shorter);
    double raw_bytes() const;
    void bound();

    std::map<std::uint32_t, Known> known_;  // key 0: all else
    bool was_used_ = false;
};

}  // namespace cairn
