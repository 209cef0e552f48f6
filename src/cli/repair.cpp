// `cairn repair`: what is damaged of a series beside its versions: records of the lineage, and directories.
#include "catalog/repair.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text_table.hpp"
#include "cli/series.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

// What a restart takes now, as far as this host can tell: one with damaged records it would pass over.
std::string outlook(Place& place, const ScratchView& scratch, const std::string& name) {
    const Result<Series> series = read_series(place, scratch, name, Manifests::whole);
    if (!series.ok()) return "";
    const Result<Seen> newest = pick_readable(*series, "newest", {});
    if (newest.ok())
        return "a restart takes version " + std::to_string(newest->key.version) + " of incarnation " +
               short_id(newest->key.incarnation) + (in_scratch_only(*newest) ? ", from scratch" : "") + "\n";
    return newest.code() == Code::not_found ? "a restart finds no version\n" : "";
}

void print(Console& console, const std::string& name, const Repair& repair, bool only_look, const std::string& then) {
    if (console.json) {
        Json document = {{"checkpoint", name}, {"repaired", Json::array()}, {"left", Json::array()}, {"dry_run", only_look}};
        for (const Repair::Done& done : repair.done) document["repaired"].push_back({{"path", done.path}, {"how", done.how}});
        for (const Status& left : repair.left) document["left"].push_back(left.text());
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return;
    }
    for (const Repair::Done& done : repair.done)
        console.out << (only_look ? "would be " : "") << for_terminal(done.path) << ": " << for_terminal(done.how) << "\n";
    if (repair.done.empty() && repair.left.empty()) console.out << name << ": nothing of its lineage is damaged\n";
    console.out << then;
}

Status run_repair(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(Place place, Place::open(arguments));
    const std::string& name = arguments.text("NAME");
    const ScratchView scratch = read_scratch(place);
    for (const Status& problem : scratch.problems) console.err << "cairn repair: " << problem.text() << "\n";
    TRY(read_series(place, scratch, name, Manifests::heads).status());
    std::vector<SealedVersion> sealed;
    for (const ScratchImage& image : scratch.images)
        if (image.key.name == name) sealed.push_back({image.key.incarnation, image.epoch, image.key.version, image.parent});
    RepairOptions options;
    options.forget = arguments.given("forget");
    options.only_look = arguments.given("dry-run");
    options.io_wait = place.io_wait();
    TRY_ASSIGN(const Repair repair, place.run(repair_lineage(place.world(), place.layout(), name, std::move(sealed), options)));
    print(console, name, repair, options.only_look, options.only_look || console.json ? "" : outlook(place, scratch, name));
    if (repair.left.empty()) return {};
    for (const Status& left : repair.left) console.err << "cairn repair: " << for_terminal(left.text()) << "\n";
    return Status(repair.left.front().code(), plural(repair.left.size(), "damaged thing") + " left as " + (repair.left.size() == 1 ? "it is" : "they are"));
}

}  // namespace

const Command repair_command = {
    "repair",
    "write damaged records of a checkpoint's lineage anew",
    "The lineage of a checkpoint says which versions belong together: two small records for each open, under "
    "NAME/lineage. Manifests and images say\n"
    "the same of their own open, so a damaged record is passed over, and repair writes it anew from what they and the "
    "rosters of jobs tell. It may be\n"
    "run beside running jobs, on any node; images count that are in this host's scratch. A copy of what stood there is "
    "kept beside it; its name ends\n"
    "in .damaged- and 32 digits, nobody reads it, and it may be removed.\n\n"
    "Where an open went back to an older version and committed nothing since, its record alone tells that version. "
    "When that is damaged, a restart\n"
    "is refused, and repair leaves it as it is: --forget puts it aside, and a restart goes on as if that open had never "
    "been. A version that is\n"
    "wanted instead can then be restored by its number. The same holds for a lineage that is no directory, and for what "
    "can not be read at all.\n\n"
    "Damaged versions are not repaired: `cairn verify` names them, `cairn rm` removes them (a full directory in a file's place is put aside, and named).",
    {{"NAME", OptionKind::text, "", "The checkpoint.", true},
     {"--forget", OptionKind::flag, "", "Go on without what nothing else tells, or what can not be read."},
     {"-n,--dry-run", OptionKind::flag, "", "Only show what would be done."}},
    {{Code::not_found, "no such checkpoint"}, {Code::corrupt, "something is damaged still; each is told, with what can be done"}},
    true,
    &run_repair,
};

}  // namespace cairn::cli
