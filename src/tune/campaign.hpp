// Campaign: which runs are made, in which order, and what they say. Knows no file and no clock of its own, only a Runner.
//
//   screening   the present settings, and each level of each factor by itself; in rounds, each in a random order, with the present ones several
//               times among them: what a level wins is told by the rounds it shares with them, so that a file system that gets slower in the
//               meantime is nobody's fault
//   contenders  what won there, by itself and together; after every two rounds the better half goes on
//   check       the best of them against the present settings, in pairs of random order. Only these runs make the answer: those before chose,
//               and whoever is best of many was also lucky
//   figures     where asked for: writers x placement x files x followers, as in ispdc23
//
// No run begins that is not expected to end within the budget.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <vector>

#include "tune/statistics.hpp"
#include "tune/variant.hpp"

namespace cairn::tune {

inline constexpr double figures_share = 0.5;  // of the budget, where figures are wanted

class Runner {
  public:
    virtual ~Runner() = default;
    virtual Result<Measured> run(const Variant& variant, std::uint32_t followers) = 0;
    virtual Nanos now() const = 0;
};

enum class Stage : std::uint8_t { screening, contenders, check, figures };
const char* stage_name(Stage stage);

struct Run {
    Stage stage = Stage::screening;
    std::uint32_t round = 0;
    Variant variant;
    std::uint32_t followers = 0;
    Measured measured;
};

struct CampaignOptions {
    Variant present;
    Levels levels;                              // besides the present ones; of a factor that has none, nothing is tried
    std::vector<std::uint32_t> followers = {1};  // the first: what is tuned for; all: in the figures
    bool durable = true;                        // compare times until all is durable, else until the last writer ended
    bool figures = false;
    Nanos ends = 0;
    std::uint64_t seed = 1;
    std::function<void(Stage stage, const Variant& next)> tell = [](Stage, const Variant&) {};
};

// How the best contender compares with the present settings: all bytes a second, its over theirs.
struct Verdict {
    enum class Kind : std::uint8_t {
        better,        // surely, and by enough to be worth a change
        within_noise,  // it may be better, and may be not
        too_few,       // not enough pairs to say how sure it is
        none_faster,   // nothing was faster than the present settings, by 2 % for each setting that changes, when it was tried
    } kind = Kind::none_faster;
    Variant best;  // what was checked
    double ratio = 1;
    Interval interval;
    std::uint32_t pairs = 0;
};

// All runs of one variant with the same followers, outside the figures.
struct Row {
    Variant variant;
    std::vector<double> received_per_s;  // the paper's metric: until the last writer ended
    std::vector<double> durable_per_s;   // the same bytes, until all was durable
    std::vector<double> all_per_s;       // all bytes, by the time that is compared
    std::vector<double> ratios;          // of these to the present settings of the same round
};

class Campaign {
  public:
    Campaign(CampaignOptions options, Runner& runner);
    // The first run that fails ends it.
    Status run();

    const std::vector<Run>& runs() const noexcept { return runs_; }
    const Verdict& verdict() const noexcept { return verdict_; }
    const CampaignOptions& options() const noexcept { return options_; }
    std::vector<Row> rows() const;  // the present settings first, then in the order of factors and levels, contenders last
    // Of the figures: points of one curve that could not be measured in time are missing.
    std::vector<double> figure_values(const Variant& variant, std::uint32_t followers) const;
    static Variant figure_variant(const CampaignOptions& options, Placement placement, std::uint32_t writers, std::uint32_t files);

  private:
    std::vector<Variant> singles() const;
    std::vector<Variant> candidates() const;
    Status screen(Nanos until);
    Status contend(Nanos until);
    Status check(Nanos until);
    Status draw();
    bool fits(const Variant& variant, std::uint32_t followers, Nanos until) const;
    Status round(Stage stage, std::vector<Variant> variants, Nanos until, bool& whole);
    Status measure(Stage stage, const Variant& variant, std::uint32_t followers);
    double rate(const Measured& measured) const { return measured.all_per_s(options_.durable); }
    std::vector<double> ratios(const Variant& variant, Stage stage) const;
    double merit(const Variant& variant) const;
    void sort_by_merit(std::vector<Variant>& alive) const;

    CampaignOptions options_;
    Runner& runner_;
    std::mt19937_64 random_;
    std::vector<Run> runs_;
    std::uint32_t round_ = 0;
    std::vector<Variant> finalists_;
    Verdict verdict_;
};

}  // namespace cairn::tune
