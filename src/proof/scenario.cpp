// Drawing a scenario from a seed, and the cluster that it is of.
#include "proof/scenario.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cairn::testing {

namespace {
constexpr double million = 1e6;
constexpr std::uint64_t nodes_max = 4096;
}  // namespace

const std::vector<FaultClass>& fault_classes() {
    using sim::Faults;
    static const std::vector<FaultClass> classes = {
        {"short", &Faults::short_transfer, 50, 0.3},
        {"read_error", &Faults::read_error, 20, 0.01},
        {"write_error", &Faults::write_error, 30, 0.02},
        {"metadata_error", &Faults::metadata_error, 30, 0.02},
        {"full", &Faults::out_of_space, 20, 0.02},
        {"fsync_error", &Faults::fsync_error, 30, 0.2},
        {"slow_io", &Faults::slow_io, 30, 0.1},
        {"hang_io", &Faults::hang_io, 20, 0.01},
        {"slow_scratch", &Faults::slow_scratch, 20, 0.2},
        {"hang_scratch", &Faults::hang_scratch, 15, 0.02},
        {"stale_read", &Faults::stale_read, 15, 0.05},
        {"other_read", &Faults::other_read, 15, 0.05},
        {"wall_set", &Faults::wall_set, 30, 1},
        {"loss", &Faults::message_loss, 50, 0.3},
        {"repeat", &Faults::message_repeat, 50, 0.3},
        {"delay", &Faults::message_delay, 50, 0.3},
        {"payload_loss", &Faults::payload_loss, 30, 0.1},
        {"payload_delay", &Faults::payload_delay, 30, 0.2},
        {"send_error", &Faults::send_error, 30, 0.1},
        {"payload_damage", &Faults::payload_damage, 30, 0.05},
        {"twin_open", &Faults::twin_open, 20, 0.3},
        {"resize_lost", &Faults::resize_lost, 30, 0.3},
        {"grow_lost", &Faults::grow_lost, 50, 1},
        {"rename", &Faults::publish_renames, 50, 1},
        {"encode_error", &Faults::encode_error, 30, 0.3},
        {"room_untrue", &Faults::room_untrue, 0, 0.5},  // drawn apart
    };
    return classes;
}

const std::vector<ScenarioNumber>& scenario_numbers() {
    using S = Scenario;
    constexpr std::uint64_t any = UINT64_MAX;
    static const std::vector<ScenarioNumber> numbers = {
        {"seed", &S::seed, 0, any, any},  // never simpler
        {"layout", &S::layout, 0, 3, 0},
        {"slots", &S::slots, 0, 64, 1},
        {"files", &S::files, 1, 1 << 16, 1},
        {"block", &S::block_bytes, 4096, 1 << 24, 4096},
        {"image", &S::image_bytes, 1, 1ull << 40, 1},
        {"image_seed", &S::image_seed, 0, any, any},
        {"writers", &S::writers, 1, 64, 1},
        {"buffer", &S::buffer_bytes, 4096, 1 << 28, 4096},
        {"buffers", &S::buffers, 1, 1024, 1},
        {"placement", &S::placement, 0, 2, 0},
        {"leaders", &S::leaders, 0, nodes_max, 0},
        {"codec", &S::codec, 0, 2, 0},
        {"keys", &S::keys, 0, 1, 0},
        {"encode_at", &S::encode_at, 0, 1, 0},
        {"full_every", &S::full_every, 1, 100, 1},
        {"merge_ranks", &S::merge_ranks, 0, 64, 1},
        {"merge_bytes", &S::merge_bytes, 1, 1 << 24, 4096},
        {"equal", &S::equal, 0, 1024, 0},
        {"attempts", &S::attempts, 1, 100, 3},
        {"versions", &S::versions, 1, 64, 64},
        {"answers", &S::answers, 1, 4096, 4096},
        {"message_units", &S::message_units, 1, 512u << 10, 512u << 10},
        {"message_pieces", &S::message_pieces, 1, 64u << 10, 64u << 10},
        {"guests", &S::guests, 1, 1024, 1024},
        {"small_io", &S::small_io, 0, 1, 0},
        {"roots", &S::roots, 0, 8, 0},
        {"persistent_too", &S::persistent_too, 0, 1, 0},
        {"old_format", &S::old_format, 0, 1, 0},
        {"regions", &S::regions, 0, 1000, 0},
        {"once", &S::once, 0, 2, 0},
        {"asked", &S::asked, 0, 4, 0},
        {"begins", &S::begins, 0, 3, 0},
        {"alone", &S::alone, 0, 1, 0},
        {"read", &S::read_bytes, 4096, 64ull << 20, 64ull << 20},
        {"share", &S::share, 0, 64, 0},
        {"storage", &S::storage_bytes_s, 1, any, 1'000'000'000},
        {"nic", &S::nic_bytes_s, 1, any, 1'000'000'000},
        {"placed", &S::placed, 0, 1, 0},
        {"gone", &S::gone, 0, nodes_max, 0},
        {"delay_ms", &S::delay_ms, 0, 60'000, 0},
        {"apart_s", &S::apart_s, 0, 1'000'000'000, 0},
    };
    return numbers;
}

std::uint64_t Scenario::ranks() const { return std::accumulate(ranks_per_node.begin(), ranks_per_node.end(), std::uint64_t{0}); }

double Scenario::fault(double sim::Faults::*rate) const { return faults_of(*this).*rate; }

namespace {

bool is_sound(const Scenario& s, bool but_for_messages) {
    using sim::Faults;
    for (const FaultClass& each : fault_classes()) {
        const bool of_messages = each.rate == &Faults::message_loss || each.rate == &Faults::message_repeat || each.rate == &Faults::message_delay ||
                                 each.rate == &Faults::send_error;
        const bool harmless = each.rate == &Faults::short_transfer || each.rate == &Faults::publish_renames || each.rate == &Faults::wall_set;
        if (!(of_messages && but_for_messages) && !harmless && s.fault(each.rate) > 0) return false;
    }
    const Scenario fast;
    return s.storage_bytes_s >= fast.storage_bytes_s && s.nic_bytes_s >= fast.nic_bytes_s && s.target_bytes_s.empty() && s.gone == 0 && s.small_io == 0 && s.asked <= 2 && s.delay_ms <= 100;
}

}  // namespace

bool Scenario::only_messages_suffer() const {
    return alone == 0 && is_sound(*this, true) && std::all_of(steps.begin(), steps.end(), [](const Step& step) { return step.what == Happening::capture; });
}

bool Scenario::only_limits_hold() const {
    const auto is_limit = [](const Step& step) { return step.what == Happening::limit; };
    const auto harmless = [&](const Step& step) { return step.what == Happening::capture || is_limit(step); };
    return alone == 0 && is_sound(*this, false) && std::all_of(steps.begin(), steps.end(), harmless) && std::any_of(steps.begin(), steps.end(), is_limit);
}

// ---- drawing ----

namespace {

class Draw {
  public:
    explicit Draw(std::uint64_t seed) : prng_(seed * 2654435761u + 1) { scenario_.seed = seed; }

    Scenario all() {
        cluster();
        settings();
        limits();
        speeds();
        // Kinds that came later hang on the seed alone, so that all others stay what they were.
        scenario_.codec = sim::mix(scenario_.seed ^ 0x636F6465) % 10 < 3;
        const std::uint64_t kind = sim::mix(scenario_.seed ^ 0x6B696E64) % 100;
        if (chance(12)) only_messages();
        else if (kind < 5) only_limits();
        else faults_and_steps();
        if (kind == 99) long_job();
        if (sim::mix(scenario_.seed ^ 0x666F7267) % 4 == 0) forgetting();
        scenario_.old_format = sim::mix(scenario_.seed ^ 0x6F6C6466) % 10 == 0;
        const std::uint64_t regions = sim::mix(scenario_.seed ^ 0x72656769);
        if (scenario_.old_format == 0) scenario_.regions = regions % 2 * (regions / 2 % 20);
        if (!scenario_.old_format && sim::mix(scenario_.seed ^ 0x726F6F74) % 100 < 15) several_roots();
        if (sim::mix(scenario_.seed ^ 0x64657065) % 6 == 0) depending();
        const bool is_of_a_kind = scenario_.only_messages_suffer() || scenario_.only_limits_hold();
        if (const std::uint64_t once = sim::mix(scenario_.seed ^ 0x6F6E6365); !scenario_.old_format && once % 8 == 0) {
            scenario_.once = 1 + once / 8 % 2;
            scenario_.answers = Scenario().answers;  // what is asked for again, once its answer was forgotten, may be used up
        }
        scenario_.alone = !is_of_a_kind && sim::mix(scenario_.seed ^ 0x616C6F6E) % 16 == 0;
        if (scenario_.codec != 0) scenario_.encode_at = sim::mix(scenario_.seed ^ 0x656E6361) % 2;
        if (scenario_.codec != 0 && sim::mix(scenario_.seed ^ 0x6175746F) % 3 == 0) scenario_.codec = 2;
        scenario_.begins = sim::mix(scenario_.seed ^ 0x62656769) % 4;
        const std::uint64_t based = sim::mix(scenario_.seed ^ 0x62617365);
        if (scenario_.codec != 0 && based % 2 == 0) scenario_.full_every = 2 + based / 2 % 3;
        if (scenario_.codec != 0) merging();
        const std::uint64_t share = sim::mix(scenario_.seed ^ 0x73686172);
        if (share % 3 == 0) scenario_.share = 1 + share / 3 % 8;
        if (scenario_.codec != 0 && scenario_.merge_ranks == 1 && !is_of_a_kind && sim::mix(scenario_.seed ^ 0x74726965) % 2 == 0) trying_to_merge();
        const std::uint64_t layout = sim::mix(scenario_.seed ^ 0x6C61796F);
        if (layout % 4 == 0 && !scenario_.old_format) scenario_.layout = 1 + layout / 4 % 2, scenario_.slots = layout / 8 % 4;
        if (layout % 4 == 1 && layout / 4 % 3 == 0 && !scenario_.old_format) scenario_.layout = 3;
        if (const std::uint64_t asked = sim::mix(scenario_.seed ^ 0x61736B65); !scenario_.old_format && scenario_.once == 0 && asked % 8 == 0)
            scenario_.asked = 1 + asked / 8 % (is_of_a_kind ? 2 : 4);
        if (scenario_.codec == 2 && !is_of_a_kind && sim::mix(scenario_.seed ^ 0x6B657973) % 2 == 0) choosing_by_key();
        if (const std::uint64_t equal = sim::mix(scenario_.seed ^ 0x65717561); equal % 6 == 0) scenario_.equal = 1 + equal / 6 % 3;
        return std::move(scenario_);
    }

  private:
    std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : prng_.next() % bound; }
    bool chance(unsigned percent) { return below(100) < percent; }

    void cluster() {
        Scenario& s = scenario_;
        nodes_ = chance(10) ? 1 + below(64) : 1 + below(6);
        s.ranks_per_node.clear();
        for (std::uint64_t i = 0; i < nodes_; ++i) s.ranks_per_node.push_back(1 + below(nodes_ > 8 ? 2 : 4));
        if (chance(25))
            for (std::uint64_t i = 1 + below(3); i > 0; --i) s.ranks_per_node.push_back(0);
        s.files = 1 + below(s.ranks());
        s.block_bytes = 4096u << below(3);
        s.image_bytes = 1 + below(chance(20) && nodes_ <= 8 ? 3'000'000 : 200'000);
        s.image_seed = below(1'000'000);
    }

    void settings() {
        Scenario& s = scenario_;
        s.writers = 1 + below(8);
        s.buffer_bytes = s.block_bytes << below(5);
        s.buffers = 1 + below(6);
        s.placement = chance(50) ? 0 : below(3);
        s.leaders = chance(50) ? 0 : 1 + below(nodes_);
        s.attempts = 1 + below(3);
        s.apart_s = chance(50) ? 0 : below(chance(50) ? 100 : 1'000'000'000);
    }

    // So small that they are met.
    void limits() {
        Scenario& s = scenario_;
        if (chance(30)) s.versions = 1 + below(4);
        if (chance(30)) s.answers = 1 + below(4);
        if (chance(30)) s.message_units = 1 + below(8);
        if (chance(30)) s.message_pieces = 1 + below(4);
        if (chance(30)) s.guests = 1;
        if (s.ranks_per_node.back() == 0 && chance(15)) s.small_io = 1;
        if (chance(50)) s.read_bytes = 4096 << below(6);
    }

    void speeds() {
        Scenario& s = scenario_;
        if (chance(50)) s.storage_bytes_s = 1'000'000 + below(5'000'000);
        if (chance(30)) s.nic_bytes_s = 1'000'000 + below(5'000'000);
        if (chance(40))  // storage targets of very different speed, so that work changes hands
            for (std::uint64_t n = 1 + below(4); n > 0; --n) s.target_bytes_s.push_back(100'000 * nodes_ * (1 + below(chance(50) ? 3 : 100)));
        s.placed = chance(50);
        if (s.placed && chance(15)) s.gone = below(s.target_bytes_s.size());
    }

    void faults_and_steps() {
        Scenario& s = scenario_;
        s.delay_ms = sim::mix(s.seed ^ 0x6C617465) % 4 == 0 ? 9'000 : 3'000;  // and io_wait is 4 s
        if (!chance(30))
            for (const FaultClass& each : fault_classes())
                s.faults.push_back(each.percent != 0 && chance(each.percent) ? static_cast<std::uint64_t>(each.most * million) * (1 + below(1000)) / 1000 : 0);
        const std::uint64_t steps = 3 + below(12);
        for (std::uint64_t i = 0; i < steps; ++i) s.steps.push_back({what_happens(), below(100'000)});
        lose_nodes();
        doubt_room();
    }

    // Where there are targets to choose from.
    void doubt_room() {
        Scenario& s = scenario_;
        const std::uint64_t drawn = sim::mix(s.seed ^ 0x726F6F6D);
        if (drawn % 3 != 0 || s.faults.empty()) return;
        for (std::size_t i = 0; i < fault_classes().size(); ++i)
            if (fault_classes()[i].rate == &sim::Faults::room_untrue) s.faults[i] = 1 + drawn / 3 % 500'000;
    }

    // Somewhere between the other steps, which stay what they are.
    void lose_nodes() {
        Scenario& s = scenario_;
        sim::Prng prng(sim::mix(s.seed ^ 0x6C6F7365));
        if (prng.next() % 100 >= 8) return;
        for (std::uint64_t i = prng.next() % 4 == 0 ? 2 : 1; i > 0; --i) {
            const auto at = static_cast<std::ptrdiff_t>(prng.next() % (s.steps.size() + 1));
            s.steps.insert(s.steps.begin() + at, {Happening::lose, prng.next() % 100'000});
        }
    }

    Happening what_happens() {
        using H = Happening;
        struct Often {
            H what;
            unsigned weight;
        };
        constexpr std::array often = {
            Often{H::capture, 10}, Often{H::kill, 4},   Often{H::pause, 2}, Often{H::crash, 2}, Often{H::partition, 2}, Often{H::end_job, 4},
            Often{H::remove, 4},   Often{H::limit, 2},  Often{H::start, 2}, Often{H::power, 2}, Often{H::strike, 6},    Often{H::let_go, 2},
            Often{H::cancel, 2},   Often{H::open, 1},   Often{H::restore, 2}, Often{H::stop, 2},      Often{H::succeed, 2},
            Often{H::wait, 2},     Often{H::mount, 2},  Often{H::flip, 1}, Often{H::capture_again, 2}, Often{H::lose, 0},  // lose_nodes
        };
        static_assert(often.size() + 3 == happening_names.size());  // and what is drawn apart (forgetting, several_roots, depending)
        unsigned all = 0;
        for (const Often& each : often) all += each.weight;
        std::uint64_t drawn = below(all);
        std::size_t i = 0;
        while (drawn >= often[i].weight) drawn -= often[i++].weight;
        return often[i].what;
    }

    // A network that loses, repeats and delays a little, over sound nodes and storage: what is lost and not said again does not go unnoticed here.
    void only_messages() {
        Scenario& s = scenario_;
        sound();
        for (const FaultClass& each : fault_classes()) {
            const bool late = each.rate == &sim::Faults::message_repeat || each.rate == &sim::Faults::message_delay;
            s.faults.push_back(late ? below(300'000) : each.rate == &sim::Faults::message_loss ? below(60'000) : 0);
        }
        for (std::uint64_t i = 2 + below(5); i > 0; --i) s.steps.push_back({Happening::capture, below(100'000)});
    }

    void sound() {
        Scenario& s = scenario_;
        const Scenario fast;
        s.storage_bytes_s = fast.storage_bytes_s;
        s.nic_bytes_s = fast.nic_bytes_s;
        s.target_bytes_s.clear();
        s.gone = s.placed = s.small_io = 0;
        s.attempts = 1;
        s.delay_ms = 100;
    }

    // Images are small: what may hardly move at all takes seconds for each chunk.
    void only_limits() {
        Scenario& s = scenario_;
        sound();
        few_nodes(4);
        s.delay_ms = 0;
        s.image_bytes = std::min<std::uint64_t>(s.image_bytes, 5 * s.block_bytes);
        for (std::uint64_t i = 3 + below(6); i > 0; --i) s.steps.push_back({chance(50) ? Happening::limit : Happening::capture, below(100'000)});
    }

    // More versions than a daemon remembers by default, whose images leave scratch now and then.
    void long_job() {
        Scenario& s = scenario_;
        few_nodes(3);
        s.versions = Scenario().versions;
        s.image_bytes = std::min<std::uint64_t>(s.image_bytes, 20'000);
        s.steps.clear();
        for (std::uint64_t i = 0; i < 80; ++i) s.steps.push_back({i % 8 == 7 ? Happening::let_go : Happening::capture, below(100'000)});
    }

    void forgetting() { add_steps(Happening::forget, 0x666F7268, 3); }

    // Parts lie below them, and each can be in trouble on its own.
    void several_roots() {
        scenario_.roots = 1 + sim::mix(scenario_.seed ^ 0x726F6F75) % 4;
        scenario_.persistent_too = sim::mix(scenario_.seed ^ 0x726F6F77) % 4 == 0;
        add_steps(Happening::root, 0x726F6F76, 5);
    }

    void depending() { add_steps(Happening::depend, 0x64657066, 4); }

    // Up to so many besides, anywhere among those that there are, and none where they would make it another kind.
    void add_steps(Happening what, std::uint64_t salt, std::uint64_t most) {
        std::vector<Step>& steps = scenario_.steps;
        if (scenario_.only_messages_suffer() || scenario_.only_limits_hold()) return;
        std::uint64_t random = sim::mix(scenario_.seed ^ salt);
        const auto draw = [&](std::uint64_t bound) { return (random = sim::mix(random + 1)) % bound; };
        for (std::uint64_t i = 1 + draw(most); i > 0; --i) {
            const auto place = steps.begin() + static_cast<std::ptrdiff_t>(draw(steps.size() + 1));
            steps.insert(place, {what, draw(100'000)});
        }
    }

    void merging() {
        const std::uint64_t random = sim::mix(scenario_.seed ^ 0x6D657267);
        if (random % 5 < 2) return;
        constexpr std::uint64_t images[] = {2, 3, 8};
        scenario_.merge_ranks = images[random / 5 % 3];
        scenario_.merge_bytes = scenario_.block_bytes * (1 + random / 15 % 4);
    }

    // Two trials must agree before anything is merged, and those want images that are not packed, and buffers with room for turns.
    void trying_to_merge() {
        Scenario& s = scenario_;
        s.merge_ranks = 0;
        s.merge_bytes = s.block_bytes * (1 + sim::mix(s.seed ^ 0x74726967) % 2);
        s.buffer_bytes = std::max(s.buffer_bytes, 8 * s.block_bytes);
        s.buffers = std::max<std::uint64_t>(s.buffers, 2);
        s.image_bytes = std::max(s.image_bytes, 40 * s.block_bytes);
        add_steps(Happening::capture, 0x74726966, 8);
    }

    // What keys are worth is known once a version was encoded, and that pays where storage is slow.
    void choosing_by_key() {
        Scenario& s = scenario_;
        s.keys = 1;
        if (s.storage_bytes_s == 0) s.storage_bytes_s = 1'000'000 + sim::mix(s.seed ^ 0x6B657974) % 5'000'000;
        s.buffers = std::max<std::uint64_t>(s.buffers, 2);
        s.image_bytes = std::max(s.image_bytes, 20 * s.block_bytes);
        add_steps(Happening::capture, 0x6B657975, 6);
    }

    void few_nodes(std::uint64_t most) {
        Scenario& s = scenario_;
        s.ranks_per_node.resize(std::min<std::uint64_t>(nodes_, most));
        s.files = std::min(s.files, s.ranks());
        s.leaders = std::min<std::uint64_t>(s.leaders, s.ranks_per_node.size());
        s.small_io = 0;
    }

    sim::Prng prng_;
    Scenario scenario_;
    std::uint64_t nodes_ = 1;  // with ranks
};

}  // namespace

Scenario draw_scenario(std::uint64_t seed) { return Draw(seed).all(); }

sim::Faults faults_of(const Scenario& scenario) {
    sim::Faults faults;
    const auto& classes = fault_classes();
    for (std::size_t i = 0; i < classes.size() && i < scenario.faults.size(); ++i) faults.*classes[i].rate = static_cast<double>(scenario.faults[i]) / million;
    faults.hang_io_max = 20 * second;
    faults.message_delay_max = static_cast<Nanos>(scenario.delay_ms) * millisecond;
    faults.peer_loss_told = 0.5;
    return faults;
}

namespace {
std::function<std::optional<GivingWay>(Rank, Version)> asked_of(const Scenario& scenario) {
    return [asked = scenario.asked, seed = scenario.image_seed](Rank rank, Version version) {
        const std::uint64_t drawn = sim::mix(seed ^ (version * 12289 + rank));
        const bool is_asked = asked % 2 == 1 ? drawn % 3 == 0 : asked != 0 && version % 2 == 1;
        if (!is_asked) return std::optional<GivingWay>();
        GivingWay way{drawn, asked > 2, std::nullopt};
        if (asked > 2 && drawn / 3 % 16 == 0) way.leaves_with = 1 + drawn / 48 % 8;
        return std::optional(way);
    };
}
}  // namespace

ClusterOptions cluster_of(const Scenario& scenario) {
    ClusterOptions options;
    options.seed = scenario.seed;
    options.ranks_per_node.assign(scenario.ranks_per_node.begin(), scenario.ranks_per_node.end());
    options.layout = static_cast<FileLayout>(scenario.layout);
    options.files = static_cast<std::uint32_t>(scenario.files);
    options.block_bytes = scenario.block_bytes;
    options.image_bytes = [most = scenario.image_bytes, seed = scenario.image_seed, as_long = scenario.full_every > 1 ? 4 : 1](Rank rank, Version version) -> std::uint64_t {
        const std::uint64_t drawn = sim::mix((rank * 31 + version / as_long) * 0x9E3779B97F4A7C15ull ^ sim::mix(seed + 1));
        return drawn % 7 == 0 ? 0 : drawn % most;
    };
    FlushSettings& s = options.settings;
    s.writers = static_cast<std::uint32_t>(scenario.writers);
    s.buffer_bytes = scenario.buffer_bytes;
    s.buffers = static_cast<std::uint32_t>(scenario.buffers);
    s.placement = static_cast<Placement>(scenario.placement);
    s.leaders = static_cast<std::uint32_t>(scenario.leaders);
    s.slots = static_cast<std::uint32_t>(scenario.slots);
    const Codec codec = scenario.full_every > 1 ? Codec::planes : Codec::zero_runs;
    s.codec = scenario.codec == 1 ? codec : Codec::none;
    if (scenario.codec == 2) s.codecs = {codec};
    if (scenario.keys != 0) {
        s.codecs = {Codec::planes, Codec::planes_small};
        options.model.codec_keys = {{0.4, 5e9, 0.2, 0.4}, {0.3, 1e6, 0.8, 1.1}, {0.3, 50e6, 0.5, 0.7}};
    }
    s.encode_at = static_cast<EncodeAt>(scenario.encode_at);
    s.full_every = static_cast<std::uint32_t>(scenario.full_every);
    s.merge_ranks = static_cast<std::uint32_t>(scenario.merge_ranks);
    s.merge_bytes = scenario.merge_bytes;
    s.equal_pages = scenario.equal != 0;
    s.limits.equal_stretch_bytes = scenario.block_bytes;
    options.alike = static_cast<std::uint32_t>(scenario.equal);
    s.encode_buffers = scenario.encode_at != 0 || scenario.full_every > 1 ? 2 : 0;
    options.model.codec_shrinks = true;
    s.attempts_max = static_cast<std::uint32_t>(scenario.attempts);
    s.heartbeat = 100 * millisecond;
    s.peer_wait = 2 * second;
    s.io_wait = 4 * second;
    s.version_wait = 20 * second;
    s.retry_wait = 1 * second;
    s.limits.versions = scenario.versions;
    s.limits.answers = scenario.answers;
    s.limits.message_units = scenario.message_units;
    s.limits.message_pieces = scenario.message_pieces;
    s.limits.guests = s.limits.strangers = scenario.guests;
    if (scenario.small_io != 0) options.io_node_buffer_bytes = scenario.block_bytes / 2;
    options.old_format = scenario.old_format != 0;
    options.regions = scenario.old_format != 0 ? 0 : static_cast<std::uint32_t>(scenario.regions);
    for (std::uint64_t root = 0; root < (options.old_format ? 0 : scenario.roots); ++root) options.roots.push_back("/persistent/.roots/" + std::to_string(root));
    options.persistent_too = !options.roots.empty() && scenario.persistent_too != 0;
    options.once = [once = scenario.once, seed = scenario.image_seed](Rank rank, Version version) {
        return once == 1 ? sim::mix(seed ^ (version * 4099 + rank)) % 3 == 0 : once == 2 && version % 2 == 1;
    };
    options.asked = asked_of(scenario);
    options.begins = [begins = scenario.begins, seed = scenario.image_seed](Rank rank, Version version, std::uint64_t bytes) {
        const std::uint64_t drawn = sim::mix(seed ^ (version * 8209 + rank));
        const bool is_told = begins == 1 || (begins == 2 && drawn % 8 != 0) || begins == 3;
        if (!is_told) return std::optional<std::uint64_t>();
        return std::optional(begins == 3 && drawn % 4 == 0 ? bytes / 2 + drawn / 4 % 10'000 : bytes);
    };
    options.restore.buffer_bytes = scenario.read_bytes;
    options.share = scenario.share;
    options.placed = scenario.placed != 0;
    options.model.wall_time_s = 1'700'000'000;
    options.model.wall_apart_max_s = scenario.apart_s;
    options.model.clock_apart_max = static_cast<Nanos>(scenario.apart_s) * second;
    options.model.persistent_rate = static_cast<double>(scenario.storage_bytes_s);
    options.model.nic_rate = static_cast<double>(scenario.nic_bytes_s);
    for (const std::uint64_t bytes_s : scenario.target_bytes_s) options.model.target_rates.push_back(static_cast<double>(bytes_s));
    for (std::uint64_t target = 0; target < scenario.gone; ++target) options.model.targets_gone.insert(target);
    return options;
}

}  // namespace cairn::testing
