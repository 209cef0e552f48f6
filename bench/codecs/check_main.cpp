// Whether FPC and the four merging schemes give back every byte of arrays of many lengths, and whether what is damaged is noticed. For tests/codecs_tables_test.py, which says what it wants of this:
// `fpc`, `merging`, `pipelines` or `damage`. Exit code: 0 where all is as it should be; else 1, and what is not.
#include <cstdio>
#include <cstring>
#include <random>

#include "codecs/fpc.hpp"
#include "codecs/merging.hpp"
#include "codecs/pipelines.hpp"

namespace cairn::bench {
namespace {

int complain(const char* what, std::size_t number) {
    std::fprintf(stderr, "%s: case %zu\n", what, number);
    return 1;
}

// Smooth, with a little noise, and now and then something else.
Bytes numbers_of(std::size_t bytes, unsigned seed) {
    std::mt19937_64 random(seed);
    Bytes made(bytes);
    double value = 1;
    for (std::size_t at = 0; at < bytes; at += 8) {
        value = random() % 97 == 0 ? static_cast<double>(random()) : value * 1.001 + static_cast<double>(random() % 7) * 1e-9;
        std::memcpy(made.data() + at, &value, std::min<std::size_t>(8, bytes - at));
    }
    return made;
}

int check_fpc() {
    for (std::size_t bytes = 0; bytes < 4000; bytes += bytes < 100 ? 1 : 97) {
        for (const unsigned level : {2u, 16u}) {
            const Bytes raw = numbers_of(bytes, static_cast<unsigned>(bytes));
            Bytes stored, back(bytes), longer(bytes + 8);
            encode_fpc(raw, level, stored);
            if (!decode_fpc(stored, back) || back != raw) return complain("FPC", bytes);
            if (decode_fpc(stored, longer)) return complain("FPC of more than it was", bytes);
            if (decode_fpc(ByteView(stored).first(stored.size() - 1), back) && bytes > 0) return complain("FPC that was cut", bytes);
        }
    }
    return 0;
}

Layout layout_of(Scheme scheme, std::uint64_t block, bool is_padded, unsigned seed) {
    std::mt19937_64 random(seed);
    Layout layout{scheme, block, is_padded, {}};
    for (unsigned f = 0; f < seed % 6; ++f) {
        FilePlace file;
        for (unsigned n = 0, count = static_cast<unsigned>(random() % 5); n < count; ++n) {
            const std::uint64_t gap = random() % 3 == 0 ? 0 : random() % 300, length = random() % 4 == 0 ? 8 : 8 * (random() % 700);
            file.arrays.push_back({file.bytes + gap, length, static_cast<std::uint32_t>(random() % 4)});
            file.bytes += gap + length;
        }
        file.bytes += random() % 100;
        layout.files.push_back(file);
    }
    return layout;
}

struct Case {
    Layout layout;
    std::vector<Bytes> files;
    std::vector<ByteView> views;
    explicit Case(Layout of, unsigned seed) : layout(std::move(of)) {
        for (const FilePlace& file : layout.files) files.push_back(numbers_of(file.bytes, seed++));
        views.assign(files.begin(), files.end());
    }
};

template <class Work>
int each_case(const Work& work) {
    for (const Scheme scheme : schemes)
        for (const std::uint64_t block : {512, 4096})
            for (const bool is_padded : {false, true})
                for (unsigned seed = 0; seed < 24; ++seed)
                    if (const int failed = work(Case(layout_of(scheme, is_blocked(scheme) ? block : 0, is_padded && is_blocked(scheme), seed), seed), seed)) return failed;
    return 0;
}

Bytes merged_bytes_of(const std::vector<StreamPlan>& plan, const std::vector<ByteView>& files) {
    Bytes bytes(merged_bytes(plan));
    merge(plan, files, bytes);
    return bytes;
}
std::vector<ByteView> streams_in(const std::vector<StreamPlan>& plan, const Bytes& bytes) {
    std::vector<ByteView> streams;
    std::uint64_t at = 0;
    for (const StreamPlan& stream : plan) {
        streams.push_back(ByteView(bytes).subspan(at, stream.bytes));
        at += stream.bytes;
    }
    return streams;
}

int check_merging() {
    return each_case([](const Case& c, unsigned seed) {
        std::optional<Layout> layout = decode_layout(encode_layout(c.layout));
        if (!layout) return complain("a layout", seed);
        const std::vector<StreamPlan> plan = plan_of(*layout);
        const Bytes bytes = merged_bytes_of(plan, c.views);
        std::vector<ByteView> views = streams_in(plan, bytes);
        const std::optional<std::vector<Bytes>> back = split(*layout, views);
        if (!back || *back != c.files) return complain(scheme_name(c.layout.scheme), seed);
        if (views.empty()) return 0;
        views.pop_back();
        return split(*layout, views) ? complain("a stream that is missing", seed) : 0;
    });
}

Merged merged_of(const std::vector<ByteView>& streams, const Bytes& bytes, Scheme scheme) {
    Merged merged;
    merged.bytes = bytes;
    for (std::size_t i = 0; i < streams.size(); ++i) {
        StreamView& view = merged.streams.emplace_back();
        view.bytes = streams[i];
        view.is_whole_files = !is_aware(scheme);
        view.largest_array = streams[i].size();
        view.type = i == 0 || view.is_whole_files ? DataType::bytes : i % 2 == 0 ? DataType::f32 : DataType::f64;
        const std::uint64_t count = view.bytes.size() / type_bytes(view.type);
        if (view.type != DataType::bytes && count > 0) view.grids = {Grid{count}};
    }
    return merged;
}

// Each pipeline that this program has; with `is_damaged` one byte is other than it was, and then what comes back may not be taken for right: either the way back fails, or the bytes differ.
int check_pipelines(bool is_damaged) {
    std::size_t noticed = 0, tried = 0;
    const int failed = each_case([&](const Case& c, unsigned seed) {
        const std::vector<StreamPlan> plan = plan_of(c.layout);
        const Bytes bytes = merged_bytes_of(plan, c.views);
        std::vector<std::uint64_t> lengths;
        for (const StreamPlan& stream : plan) lengths.push_back(stream.bytes);
        const Merged merged = merged_of(streams_in(plan, bytes), bytes, c.layout.scheme);
        for (const Pipeline& pipeline : pipelines()) {
            if (lacks(pipeline) != nullptr) continue;
            std::optional<Bytes> stored = encode(pipeline, merged, {});
            if (!stored) return complain(pipeline.name, seed);
            Bytes back(bytes.size());
            if (is_damaged && !stored->empty()) (*stored)[stored->size() / 2] ^= std::byte{64};
            const bool is_right = decode(pipeline, *stored, lengths, back) && back == bytes;
            tried += is_damaged && !bytes.empty() ? 1 : 0;
            noticed += is_damaged && !bytes.empty() && !is_right ? 1 : 0;
            if (!is_damaged && !is_right) return complain(pipeline.name, seed);
        }
        return 0;
    });
    // A bit that no decoder looks at (of padding, or of a time in a header) may go unnoticed, and rarely does.
    return failed != 0 || noticed < tried * 98 / 100 ? complain("damage that went unnoticed, of all", tried - noticed) : 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int count, char** arguments) {
    const std::string_view what = count == 2 ? arguments[1] : "";
    if (what == "fpc") return cairn::bench::check_fpc();
    if (what == "merging") return cairn::bench::check_merging();
    if (what == "pipelines") return cairn::bench::check_pipelines(false);
    if (what == "damage") return cairn::bench::check_pipelines(true);
    std::fprintf(stderr, "usage: cairn_codecs_check fpc|merging|pipelines|damage\n");
    return 2;
}
