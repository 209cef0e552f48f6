#include "codec/records.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace cairn {

namespace {

constexpr std::size_t window_bytes = 1024, windows = 4;
constexpr std::size_t records_min = 128, glanced_records = 640;
constexpr double stands_out = 0.03;  // of the places that were looked at: what a record's length has before all lengths of one number
constexpr double speaks_against = 0.1;  // what is told of an array
constexpr double as_likely = 0.8;    // of what the best length stands out by: the shortest that has it is the record's, and the others are several records
constexpr double as_good = 0.005;    // as a share of raw bytes: what was good for one place is for the next
constexpr double whole = 0.01;       // of a number's bytes: less is not worth taking it for two
constexpr double glanced = 1.01;     // of what is left: a closer look finds a little more
constexpr double worth_it = 0.985;   // of what is left without columns: to take records apart takes time
constexpr double code_bytes = 60;    // of the table of a plane that gets shorter, about

// In some places of so many bytes each, how many are what they were `lag` bytes before.
std::size_t same(ByteView raw, std::size_t lag, std::size_t window) {
    constexpr std::size_t lanes = 32;
    static_assert(windows * window_bytes / lanes < 256);
    std::array<std::uint8_t, lanes> counts = {};
    for (std::size_t i = 0; i < windows; ++i) {
        const std::byte* const at = raw.data() + record_bytes_max + (raw.size() - record_bytes_max - window_bytes) * (2 * i + 1) / (2 * windows);
        for (std::size_t round = 0; round < window; round += lanes)
            for (std::size_t lane = 0; lane < lanes; ++lane) counts[lane] = static_cast<std::uint8_t>(counts[lane] + (at[round + lane] == (at - lag)[round + lane]));
    }
    std::size_t sum = 0;
    for (const std::uint8_t count : counts) sum += count;
    return sum;
}

bool is_enough(ByteView raw) { return raw.size() >= 2 * (record_bytes_max + window_bytes); }

// What a column takes of each record, bytes, with its heads.
double bytes_of(const Choice& choice, std::size_t bytes, std::size_t records) {
    double heads = 4.0 + 4.0 * choice.way.strides;
    for (std::size_t plane = 0; plane < choice.way.width; ++plane) heads += 4 + (choice.cost.plane[plane] > 0.01 && choice.cost.plane[plane] < 0.99 ? code_bytes : 0);
    return std::min(1.0, choice.cost.all) * static_cast<double>(bytes) + heads / static_cast<double>(records);
}

// One sequence of records, and memory for a column of them.
struct Looked {
    ByteView raw;
    std::size_t record;
    std::span<std::byte> column;
    std::size_t records() const { return raw.size() / record - 2; }  // whichever place in the first one they begin at
    // A part of it, as a glance needs.
    Looked some() const {
        const std::size_t wanted = std::min(records(), glanced_records), skipped = (records() - wanted) / 3;
        return {raw.subspan(skipped * record, (wanted + 2) * record), record, column};
    }
    ByteView at(std::size_t offset, std::size_t bytes) const {
        gather_column(raw.data(), record, records(), offset, bytes, column.data());
        return column.first(records() * bytes);
    }
};

// What is cheapest from a place in a record on, if numbers may begin at each multiple of `grid`. They go round: the last one of a record may end in the next one.
class Cut {
  public:
    Cut(const Looked& all, bool is_swapped) : record_(all.record), grid_(record_ % 4 == 0 ? 4 : record_ % 2 == 0 ? 2 : 1) {
        const Looked looked = all.some();
        for (std::size_t at = 0; at < record_; at += grid_)
            for (std::size_t width = grid_; width <= width_max; width *= 2)
                cost_[at][index(width)] = bytes_of(glance_column(looked.at(at, width), static_cast<std::uint8_t>(width), is_swapped), width, all.records());
    }
    // The widths, from `begin` on.
    double from(std::size_t begin, std::vector<std::uint8_t>& widths) const {
        const std::size_t record = record_;
        std::array<double, record_bytes_max + 1> least;
        std::array<std::uint8_t, record_bytes_max + 1> last = {};
        least.fill(std::numeric_limits<double>::infinity());
        least[0] = 0;
        for (std::size_t at = 0; at < record; at += grid_)
            for (std::size_t width = grid_; width <= width_max && at + width <= record; width *= 2) {
                const double cost = least[at] + cost_[(begin + at) % record][index(width)] - whole * static_cast<double>(width) * static_cast<double>(index(width));
                if (cost >= least[at + width]) continue;
                least[at + width] = cost;
                last[at + width] = static_cast<std::uint8_t>(width);
            }
        widths.clear();
        for (std::size_t at = record; at > 0; at -= last[at]) widths.insert(widths.begin(), last[at]);
        return least[record];
    }
    std::size_t grid() const { return grid_; }

  private:
    static std::size_t index(std::size_t width) { return width == 8 ? 3 : width == 4 ? 2 : width == 2 ? 1 : 0; }

    std::size_t record_, grid_;
    std::array<std::array<double, 4>, record_bytes_max> cost_ = {};
};

// The widths of the numbers of a record, and where the first record begins. `least`: what is left, about, as a share.
std::vector<std::uint8_t> cut(const Looked& looked, bool is_swapped, std::size_t& before, double& least) {
    const Cut cut(looked, is_swapped);
    std::vector<std::uint8_t> widths, best;
    least = std::numeric_limits<double>::infinity();
    for (std::size_t begin = 0; begin < std::min(width_max, looked.record); begin += cut.grid()) {
        const double cost = cut.from(begin, widths) / static_cast<double>(looked.record);
        if (cost >= least) continue;
        least = cost;
        before = begin;
        best = widths;
    }
    return best;
}

double cost_of(const Columns& columns, std::size_t records) {
    double bytes = 0;
    for (const Column& each : columns.columns) bytes += bytes_of(each.choice, each.bytes, records);
    return bytes / columns.record;
}

// As they were chosen elsewhere.
Records look_again(const Looked& looked, const Records& before) {
    Records found = before;
    std::size_t offset = found.columns.before;
    for (Column& each : found.columns.columns) {
        each.choice = choose_column(looked.at(offset, each.bytes), each.choice.way.width, found.is_swapped, Effort::fast, &each.choice);
        offset += each.bytes;
    }
    found.cost = cost_of(found.columns, looked.records());
    return found;
}

Records choose_each(const Looked& looked, const std::vector<std::uint8_t>& widths, std::size_t before, bool is_swapped, Effort effort) {
    Records found{{static_cast<std::uint16_t>(looked.record), static_cast<std::uint16_t>(before), {}}, 0, is_swapped, widths};
    std::size_t offset = before;
    for (const std::uint8_t width : widths) {
        found.columns.columns.push_back({width, choose_column(looked.at(offset, width), width, is_swapped, effort)});
        offset += width;
    }
    found.cost = cost_of(found.columns, looked.records());
    return found;
}

constexpr std::size_t glanced_places = 31, bytes_each = 8, glanced_bytes = glanced_places * bytes_each;
static_assert(glanced_bytes < 256);

// How many of a few bytes are what lies before them: in `record_bytes_max - lag` by how far.
std::array<std::uint8_t, record_bytes_max> glance(ByteView raw) {
    std::array<std::uint8_t, record_bytes_max> counts = {};
    for (std::size_t i = 0; i < glanced_places; ++i) {
        const std::size_t uneven = i * i * 29 % 256;  // so that they are no steps of a record
        const std::byte* const place = raw.data() + record_bytes_max + uneven + (raw.size() - record_bytes_max - 256 - bytes_each) / glanced_places * i;
        for (std::size_t at = 0; at < bytes_each; ++at) {
            const std::byte* __restrict before = place + at - record_bytes_max;
            const std::byte value = place[at];
            for (std::size_t lag = 0; lag < record_bytes_max; ++lag) counts[lag] = static_cast<std::uint8_t>(counts[lag] + (before[lag] == value));
        }
    }
    return counts;
}

// Whether some distance has a greater share than those that are told.
template <typename Share>
bool stands_against(const NumberArray& array, const Share& share) {
    double told = 0, other = 0;
    for (const std::uint64_t numbers : {std::uint64_t{1}, std::uint64_t{array.row}, std::uint64_t{array.plane}})
        if (const std::uint64_t lag = numbers * array.width; lag > 0 && lag <= record_bytes_max) told = std::max(told, share(lag));
    for (std::size_t lag = 1; lag <= record_bytes_max; lag += lag < 32 ? 1 : 8) other = std::max(other, share(lag));
    return other >= told + speaks_against;
}

}  // namespace

bool may_be_records(ByteView raw, const NumberArray& array, const Way& way) {
    const std::uint64_t record = std::uint64_t{array.row} * array.width;
    if (record < record_bytes_min || record > record_bytes_max) return false;
    const auto end = way.stride.begin() + way.strides;
    const bool is_told_by_next = std::find(way.stride.begin(), end, 1) != end;
    return alike(raw, record) > alike(raw, array.width) + (is_told_by_next ? speaks_against : stands_out);
}

double alike(ByteView raw, std::size_t record) { return is_enough(raw) ? static_cast<double>(same(raw, record, window_bytes)) / (windows * window_bytes) : 0; }

// A quarter of the places tells whether to look at all.
std::size_t guess_record(ByteView raw) {
    if (!is_enough(raw)) return 0;
    for (const std::size_t window : {window_bytes / 4, window_bytes}) {
        std::array<double, record_bytes_max + 1> found = {};
        double most = 0, mean = 0, number = 0;
        for (std::size_t lag = 1; lag <= record_bytes_max; ++lag) {
            found[lag] = static_cast<double>(same(raw, lag, window)) / static_cast<double>(windows * window);
            mean += found[lag] / record_bytes_max;
            if (lag == 1 || lag == 2 || lag == 4 || lag == 8) number = std::max(number, found[lag]);
            if (lag >= record_bytes_min) most = std::max(most, found[lag]);
        }
        if (most < number + stands_out) return 0;
        const auto stands = [&](double each) { return each - mean >= as_likely * (most - mean); };
        if (window == window_bytes) return static_cast<std::size_t>(std::find_if(found.begin() + record_bytes_min, found.end(), stands) - found.begin());
    }
    return 0;
}

// A few bytes, each beside all those before it, tell whether to look again.
bool is_more_alike(ByteView raw, const NumberArray& array) {
    if (!is_enough(raw)) return false;
    const std::array<std::uint8_t, record_bytes_max> seen = glance(raw);
    const auto glanced_share = [&](std::size_t lag) { return static_cast<double>(seen[record_bytes_max - lag]) / glanced_bytes; };
    const auto share = [&](std::size_t lag) { return alike(raw, lag); };
    return stands_against(array, glanced_share) && stands_against(array, share);
}

std::optional<Records> choose_columns(ByteView raw, std::size_t record, bool is_swapped, double most, Effort effort, std::span<std::byte> column, const Records* before) {
    if (record < record_bytes_min || record > record_bytes_max || raw.size() / record < records_min) return std::nullopt;
    const Looked looked{raw, record, column};
    std::vector<std::uint8_t> widths;
    std::size_t begin = 0;
    if (before && before->columns.record == record) {
        Records again = look_again(looked, *before);
        if (again.cost < before->cost + as_good) return again;
        widths = before->widths;
        begin = before->columns.before;
    } else {
        double about = 0;
        widths = cut(looked, is_swapped, begin, about);
        if (about > most * glanced) return std::nullopt;
    }
    Records found = choose_each(looked, widths, begin, before ? before->is_swapped : is_swapped, effort);
    return found.cost < most * worth_it ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace cairn
