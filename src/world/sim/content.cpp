// Runs of real, described and absent bytes.
#include "world/sim/content.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checksum.hpp"
#include "world/sim/prng.hpp"

namespace cairn::sim {

namespace {

// Word i of the sequence of a seed is mix(mix(seed) + i * golden), its bytes lowest first.
void describe_into(std::uint64_t seed, std::uint64_t offset, std::uint64_t length, std::byte* into) {
    constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ull;
    std::uint64_t state = mix(seed) + offset / 8 * golden;
    while (length > 0) {
        const std::uint64_t word = mix(state);
        const std::uint64_t skip = offset % 8, count = std::min<std::uint64_t>(8 - skip, length);
        for (std::uint64_t i = 0; i < count; ++i) into[i] = static_cast<std::byte>(word >> (8 * (skip + i)));
        into += count;
        offset += count;
        length -= count;
        state += golden;
        for (; length >= 8 && offset % 8 == 0; into += 8, offset += 8, length -= 8, state += golden) {
            const std::uint64_t whole = mix(state);
            if constexpr (std::endian::native == std::endian::little) std::memcpy(into, &whole, 8);
            else for (unsigned i = 0; i < 8; ++i) into[i] = static_cast<std::byte>(whole >> (8 * i));
        }
    }
}

bool all_zero(const Run& run) {
    const auto first = run.bytes->begin() + static_cast<std::ptrdiff_t>(run.offset);
    return std::all_of(first, first + static_cast<std::ptrdiff_t>(run.length), [](std::byte b) { return b == std::byte{}; });
}

bool same_description(const Run& a, const Run& b) {
    if (a.kind != b.kind) return false;
    return a.kind == Run::Kind::hole || (a.kind == Run::Kind::described && a.seed == b.seed && a.offset == b.offset);
}

// Real bytes beside described ones may be their continuation (a bit flipped and flipped back): says how many are.
std::uint64_t continues(const Run& described, const Run& bytes) {
    std::uint64_t count = 0;
    std::byte expected{};
    while (count < bytes.length) {
        describe_into(described.seed, described.offset + described.length + count, 1, &expected);
        if ((*bytes.bytes)[bytes.offset + count] != expected) break;
        ++count;
    }
    return count;
}

// The same from the other side, for a whole run of real bytes only.
bool precedes(const Run& bytes, const Run& described) {
    if (bytes.kind != Run::Kind::bytes || described.kind != Run::Kind::described || described.offset < bytes.length) return false;
    const Run before{Run::Kind::described, described.seed, described.offset - bytes.length, 0, nullptr};
    return continues(before, bytes) == bytes.length;
}

bool joins(const Run& a, const Run& b) {
    if (a.kind != b.kind) return false;
    if (a.kind == Run::Kind::hole) return true;
    return a.offset + a.length == b.offset && (a.kind == Run::Kind::described ? a.seed == b.seed : a.bytes == b.bytes);
}

std::uint64_t add_description(std::uint64_t sum, Run::Kind kind, std::uint64_t seed, std::uint64_t offset, std::uint64_t length) {
    sum = mix(sum + static_cast<std::uint64_t>(kind));
    sum = mix(sum ^ mix(seed)) + offset;
    return mix(sum) + length;
}

}  // namespace

Run Run::part(std::uint64_t from, std::uint64_t count) const {
    Run result = *this;
    if (kind != Kind::hole) result.offset += from;
    result.length = count;
    return result;
}

void Run::materialise(std::byte* into) const {
    switch (kind) {
        case Kind::hole: std::fill_n(into, length, std::byte{}); break;
        case Kind::described: describe_into(seed, offset, length, into); break;
        case Kind::bytes: std::copy_n(bytes->begin() + static_cast<std::ptrdiff_t>(offset), length, into); break;
    }
}

Runs runs_of_bytes(ByteView bytes) {
    if (bytes.empty()) return {};
    Run run;
    run.kind = Run::Kind::bytes;
    run.length = bytes.size();
    run.bytes = std::make_shared<const Bytes>(bytes.begin(), bytes.end());
    return {run};
}

Runs runs_of_description(std::uint64_t seed, std::uint64_t offset, std::uint64_t length) {
    if (length == 0) return {};
    return {Run{Run::Kind::described, seed, offset, length, nullptr}};
}

std::uint64_t length_of(const Runs& runs) {
    std::uint64_t sum = 0;
    for (const Run& run : runs) sum += run.length;
    return sum;
}

Runs part_of(const Runs& runs, std::uint64_t from, std::uint64_t count) {
    Runs result;
    for (const Run& run : runs) {
        if (count == 0) break;
        if (from >= run.length) {
            from -= run.length;
            continue;
        }
        const std::uint64_t here = std::min(count, run.length - from);
        result.push_back(run.part(from, here));
        count -= here;
        from = 0;
    }
    return result;
}

Runs coalesce(const Runs& runs) {
    Runs result;
    const auto append = [&](Run run) {
        if (run.length == 0) return;
        if (!result.empty() && precedes(result.back(), run)) {
            run.offset -= result.back().length;
            run.length += result.back().length;
            result.pop_back();
        }
        if (!result.empty() && joins(result.back(), run)) result.back().length += run.length;
        else result.push_back(std::move(run));
    };
    for (Run run : runs) {
        if (run.kind == Run::Kind::bytes && !result.empty() && result.back().kind == Run::Kind::described) {
            const std::uint64_t absorbed = continues(result.back(), run);
            result.back().length += absorbed;
            run = run.part(absorbed, run.length - absorbed);
        }
        if (run.kind == Run::Kind::bytes && run.length > 0 && all_zero(run)) run = Run{Run::Kind::hole, 0, 0, run.length, nullptr};
        append(std::move(run));
    }
    return result;
}

Bytes materialise(const Runs& runs) {
    Bytes bytes(length_of(runs));
    std::byte* at = bytes.data();
    for (const Run& run : runs) {
        run.materialise(at);
        at += run.length;
    }
    return bytes;
}

bool equal(const Runs& a, const Runs& b) {
    if (length_of(a) != length_of(b)) return false;
    constexpr std::uint64_t step = 4096;
    std::byte left[step], right[step];
    std::size_t i = 0, j = 0;
    std::uint64_t in_a = 0, in_b = 0;
    while (i < a.size() && j < b.size()) {
        const Run x = a[i].part(in_a, a[i].length - in_a), y = b[j].part(in_b, b[j].length - in_b);
        std::uint64_t count = std::min(x.length, y.length);
        if (!same_description(x, y)) {
            count = std::min(count, step);
            x.part(0, count).materialise(left);
            y.part(0, count).materialise(right);
            if (!std::equal(left, left + count, right)) return false;
        }
        if ((in_a += count) == a[i].length) ++i, in_a = 0;
        if ((in_b += count) == b[j].length) ++j, in_b = 0;
    }
    return true;
}

std::uint64_t checksum_of(const Runs& runs) {
    if (length_of(runs) <= exact_bytes_max) return checksum(materialise(runs));
    const Runs canonical = coalesce(runs);
    if (std::all_of(canonical.begin(), canonical.end(), [](const Run& run) { return run.kind == Run::Kind::bytes; }))
        return checksum(materialise(canonical));
    std::uint64_t sum = 0;
    Runs real;  // neighbours in the content, though not in memory
    const auto close_real = [&] {
        if (!real.empty()) sum = mix(sum ^ mix(checksum(materialise(real)))) + length_of(real);
        real.clear();
    };
    for (const Run& run : canonical) {
        if (run.kind == Run::Kind::bytes) {
            real.push_back(run);
            continue;
        }
        close_real();
        sum = add_description(sum, run.kind, run.seed, run.offset, run.length);
    }
    close_real();
    return mix(sum);
}

// Most blocks lie within one run: those need no list of their own.
std::vector<std::uint64_t> checksums_of(const Runs& runs, const Units& units) {
    const std::vector<std::uint64_t> ends = unit_ends(units, length_of(runs));
    std::vector<std::uint64_t> sums;
    sums.reserve(ends.size());
    std::size_t at = 0;
    std::uint64_t begins = 0;  // where run `at` does
    std::uint64_t from = 0;
    for (const std::uint64_t end : ends) {
        const std::uint64_t length = end - from;
        while (begins + runs[at].length <= from) begins += runs[at++].length;
        const Run& run = runs[at];
        if (run.kind == Run::Kind::described && length > exact_bytes_max && from + length <= begins + run.length)
            sums.push_back(mix(add_description(0, run.kind, run.seed, run.offset + (from - begins), length)));
        else sums.push_back(checksum_of(part_of(runs, from, length)));
        from = end;
    }
    return sums;
}

bool Content::can_flatten() const noexcept {
    if (flat_) return flat_->size() >= size_;
    return std::none_of(runs_.begin(), runs_.end(), [](const auto& entry) { return entry.second.kind == Run::Kind::described; });
}

void Content::clear_range(std::uint64_t from, std::uint64_t to) {
    auto it = runs_.lower_bound(from);
    if (it != runs_.begin()) {
        auto before = std::prev(it);
        const std::uint64_t start = before->first, end = start + before->second.length;
        if (end > from) {
            const Run whole = before->second;
            before->second.length = from - start;
            stored_ -= end - from;
            if (end > to) {
                runs_.emplace(to, whole.part(to - start, end - to));
                stored_ += end - to;
            }
        }
    }
    while (it != runs_.end() && it->first < to) {
        const std::uint64_t start = it->first, end = start + it->second.length;
        stored_ -= it->second.length;
        if (end > to) {
            const Run rest = it->second.part(to - start, end - to);
            runs_.erase(it);
            runs_.emplace(to, rest);
            stored_ += rest.length;
            return;
        }
        it = runs_.erase(it);
    }
}

void Content::write(std::uint64_t offset, const Runs& runs) {
    const std::uint64_t flat = flat_ ? flat_->size() : 0;
    for (Run run : runs) {
        if (run.length == 0) continue;
        size_ = std::max(size_, offset + run.length);
        if (offset < flat) {
            const std::uint64_t here = std::min(run.length, flat - offset);
            run.part(0, here).materialise(flat_->data() + offset);
            run = run.part(here, run.length - here);
            offset += here;
            if (run.length == 0) continue;
        }
        const std::uint64_t end = offset + run.length;
        auto next = runs_.lower_bound(offset);
        const auto meets = [&](auto it) { return it != runs_.end() && it->first < end && it->first + it->second.length > offset; };
        if (meets(next) || (next != runs_.begin() && meets(std::prev(next)))) {
            clear_range(offset, end);
            next = runs_.lower_bound(offset);
        }
        if (run.kind != Run::Kind::hole) {
            stored_ += run.length;
            if (next != runs_.begin() && std::prev(next)->first + std::prev(next)->second.length == offset &&
                joins(std::prev(next)->second, run))
                std::prev(next)->second.length += run.length;
            else runs_.emplace_hint(next, offset, std::move(run));
        }
        offset = end;
    }
}

void Content::read_runs(std::uint64_t from, std::uint64_t to, Runs& into) const {
    auto it = runs_.upper_bound(from);
    if (it != runs_.begin() && std::prev(it)->first + std::prev(it)->second.length > from) --it;
    while (from < to) {
        if (it == runs_.end() || it->first >= to) {
            into.push_back(Run{Run::Kind::hole, 0, 0, to - from, nullptr});
            return;
        }
        if (it->first > from) {
            into.push_back(Run{Run::Kind::hole, 0, 0, it->first - from, nullptr});
            from = it->first;
        }
        const std::uint64_t skip = from - it->first, count = std::min(it->second.length - skip, to - from);
        into.push_back(it->second.part(skip, count));
        from += count;
        ++it;
    }
}

Runs Content::read(std::uint64_t offset, std::uint64_t length) const {
    Runs result;
    const std::uint64_t flat = flat_ ? flat_->size() : 0;
    if (offset < flat && length > 0) {
        const std::uint64_t here = std::min(length, flat - offset);
        result = runs_of_bytes(ByteView(flat_->data() + offset, here));
        offset += here;
        length -= here;
    }
    if (length > 0) read_runs(offset, offset + length, result);
    return result;
}

void Content::resize(std::uint64_t size) {
    if (size < size_) {
        const std::uint64_t flat = flat_ ? flat_->size() : 0;
        if (size < flat) std::fill(flat_->begin() + static_cast<std::ptrdiff_t>(size), flat_->end(), std::byte{});
        clear_range(std::max(size, flat), size_);
    }
    size_ = size;
}

void Content::flip_bit(std::uint64_t byte, unsigned bit) {
    Bytes one = materialise(read(byte, 1));
    one[0] ^= static_cast<std::byte>(1u << (bit & 7));
    write(byte, runs_of_bytes(one));
}

void Content::lose(std::uint64_t offset) {
    has_lost_bytes_ = true;
    if (offset < size_) write(offset, {Run{.kind = Run::Kind::hole, .length = size_ - offset}});
}

std::byte* Content::flatten() {
    CAIRN_CHECK(can_flatten());
    if (!flat_) {
        auto bytes = std::make_unique<Bytes>(materialise(read(0, size_)));
        runs_.clear();
        stored_ = bytes->size();
        flat_ = std::move(bytes);
    }
    return flat_->data();
}

SimBuffer::SimBuffer(std::shared_ptr<Content> content, std::uint64_t size, std::shared_ptr<std::uint64_t> account)
    : content_(std::move(content)), size_(size), account_(std::move(account)) {
    if (account_) *account_ += size_;
}
SimBuffer::~SimBuffer() {
    if (account_) *account_ -= size_;
}

Runs SimBuffer::read(std::uint64_t offset, std::uint64_t length) {
    Runs runs = content_->read(offset, length);
    constexpr std::uint64_t used_up = 0x75736564;
    if (once_) content_->write(offset, runs_of_description(used_up, offset, length));
    return runs;
}

Runs runs_of(const Slice& slice) {
    if (slice.length == 0) return {};
    if (slice.buffer->data() != nullptr) return runs_of_bytes(slice.bytes());
    auto* buffer = dynamic_cast<SimBuffer*>(slice.buffer.get());
    CAIRN_CHECK(buffer != nullptr);
    return buffer->read(slice.offset, slice.length);
}

// A real buffer ends where it ends; here what came behind its end would only make its content longer.
void put(const Slice& into, const Runs& runs) {
    CAIRN_CHECK(length_of(runs) <= into.length);
    if (runs.empty()) return;
    CAIRN_CHECK(into.offset <= into.buffer->size() && into.length <= into.buffer->size() - into.offset);
    if (into.buffer->data() != nullptr) {
        std::byte* at = into.data();
        for (const Run& run : runs) {
            run.materialise(at);
            at += run.length;
        }
        return;
    }
    auto* buffer = dynamic_cast<SimBuffer*>(into.buffer.get());
    CAIRN_CHECK(buffer != nullptr);
    buffer->content().write(into.offset, runs);
}

bool is_mapped(const Slice& slice) {
    if (const auto* view = dynamic_cast<const SimBuffer*>(slice.buffer.get())) return view->mapped();
    return dynamic_cast<const FlatBuffer*>(slice.buffer.get()) != nullptr;
}

Slice slice_of(const Runs& runs) {
    const std::uint64_t length = length_of(runs);
    auto content = std::make_shared<Content>();
    content->write(0, runs);
    content->resize(length);
    return {std::make_shared<SimBuffer>(std::move(content), length), 0, length};
}

Slice describe(std::uint64_t seed, std::uint64_t length, std::uint64_t offset) { return slice_of(runs_of_description(seed, offset, length)); }

Slice describe_once(std::uint64_t seed, std::uint64_t length) {
    auto content = std::make_shared<Content>();
    content->write(0, runs_of_description(seed, 0, length));
    auto buffer = std::make_shared<SimBuffer>(std::move(content), length);
    buffer->give_once();
    return {std::move(buffer), 0, length};
}

bool content_equal(const Slice& a, const Slice& b) { return equal(runs_of(a), runs_of(b)); }

}  // namespace cairn::sim
