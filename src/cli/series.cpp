// What commands see of scratch: each image with the doubt that a starting daemon would have of it.
#include "cli/series.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <ostream>
#include <set>

#include "base/text_table.hpp"
#include "copies/scratch.hpp"
#include "daemon/boot.hpp"

namespace cairn::cli {

namespace {

// As the node's daemon will take it when it starts; its bytes are compared with its checksums by whoever reads them.
Status doubt_about(const LocalImage& image, const Boot& boot) {
    if (!boot.doubts(image)) return {};
    return check_proof(image).within("not believed (" + boot.why + ")");
}

// The note is looked at before the images: a daemon that starts meanwhile has removed what it does not believe before it writes another.
Result<ScratchScan> scan_with_note(Place& place, const ScratchLayout& root, Boot& boot) {
    constexpr int looks_max = 3;
    for (int looks = 1;; ++looks) {
        boot = Boot::look(root);
        Result<ScratchScan> scan = place.run(scan_scratch(place.world(), root, place.io_wait()));
        const Boot now = Boot::look(root);
        if (looks == looks_max || (now.is_same == boot.is_same && now.doubtful == boot.doubtful)) return scan;
    }
}

}  // namespace

ScratchView read_scratch(Place& place) { return read_scratch(place, scratch_roots(place.settings())); }

ScratchView read_scratch(Place& place, const std::vector<ScratchLayout>& nodes) {
    ScratchView view;
    for (const ScratchLayout& root : nodes) {
        Boot boot;
        Result<ScratchScan> scan = scan_with_note(place, root, boot);
        if (!scan.ok()) {
            view.problems.push_back(std::move(scan).status());
            continue;
        }
        for (const LocalImage& image : scan->images)
            view.images.push_back({image.header.key, image.header.epoch, image.header.parent, image.header.rank,
                                   image.header.ranks, image.header.image.bytes, image.path, doubt_about(image, boot)});
        for (Unread& each : scan->unread) view.problems.push_back(std::move(each.why));
    }
    return view;
}

Result<std::vector<std::string>> series_names(Place& place, const ScratchView& scratch) {
    TRY_ASSIGN(const std::vector<std::string> names,
               place.run(list_series(place.world(), place.layout(), place.deadline())));
    std::set<std::string> all(names.begin(), names.end());
    for (const ScratchImage& image : scratch.images) all.insert(image.key.name);
    return std::vector<std::string>(all.begin(), all.end());
}

Result<Series> read_series(Place& place, const ScratchView& scratch, const std::string& name, Manifests manifests, Roots roots) {
    return place.run(load_series(place.world(), place.layout(), name, scratch.images, roots, manifests, place.io_wait()));
}

void tell_lineage_problems(Console& console, const char* command, const Series& series) {
    for (const Status& problem : lineage_problems(series)) console.err << "cairn " << command << ": " << for_terminal(problem.text()) << "\n";
}

void tell_damage_above(Console& console, const char* command, const Series& series, const Seen& picked) {
    for (const Seen* seen : damaged_above(series, picked))
        console.err << "cairn " << command << ": note: version " << seen->key.version << " is newer than " << picked.key.version << ", and " << state_name(*seen) << ": "
                    << for_terminal(seen->entry.damage->text()) << "\n";
}

std::string short_id(Id128 id) { return id ? id.hex().substr(0, 8) : "-"; }

std::string format_time(std::uint64_t wall_time_s) {
    if (wall_time_s == 0) return "-";
    const auto seconds = static_cast<std::time_t>(std::min<std::uint64_t>(wall_time_s, 1ull << 40));
    std::tm parts{};
    if (!localtime_r(&seconds, &parts)) return "-";
    std::array<char, 40> text;
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

}  // namespace cairn::cli
