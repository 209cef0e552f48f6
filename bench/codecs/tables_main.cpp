// What mcrEngine's merging schemes and pipelines, others' codecs and Cairn's make of sets of checkpoints, as JSON on standard output; bench/codecs_tables makes tables and plots of it. One thread, in seconds of its processor.
// Every round trip is compared.
//
// Exit code: 0; 1 where a folder can not be read, or something does not come back as it was; 2 for a wrong command line.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdio>

#include "codecs/measure.hpp"

namespace cairn::bench {
namespace {

using Json = nlohmann::ordered_json;

int run(const std::vector<std::string>& folders, const Plan& plan, const std::string& export_folder) {
    Json sets = Json::array(), skipped = Json::array();
    for (const Pipeline& pipeline : pipelines())
        if (const char* library = lacks(pipeline)) skipped.push_back({{"pipeline", pipeline.name}, {"why", std::string("built without ") + library}});
    for (const std::string& folder : folders) {
        const Set set = read_set(folder);
        const double begun = processor_seconds();
        Json rows = rows_of(set, plan);
        std::fprintf(stderr, "%s: %zu rows, %.0f s\n", set.name.c_str(), rows.size(), processor_seconds() - begun);
        sets.push_back({{"name", set.name}, {"facts", facts_of(set)}, {"rows", std::move(rows)}});
        if (!export_folder.empty()) export_set(set, export_folder);
    }
    std::printf("%s\n", Json{{"sets", sets}, {"skipped", skipped}}.dump(1).c_str());
    return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int count, char** arguments) {
    CLI::App app("what merging schemes and codecs make of the files below each folder; JSON");
    std::vector<std::string> folders;
    std::string export_folder;
    cairn::bench::Plan plan;
    app.add_option("FOLDER", folders, "sets of checkpoints")->required();
    app.add_option("--export", export_folder, "also write the merged arrays there, for other programs");
    app.add_option("--only", plan.only, "this pipeline; again for more")->allow_extra_args(false);
    app.add_option("--repeats", plan.repeats, "of what is measured with all ranks in one group; the median counts");
    app.add_option("--blocks", plan.block_bytes, "bytes of a block")->delimiter(',');
    app.add_option("--groups", plan.groups, "ranks of a group")->delimiter(',');
    app.add_option("--variable-min", plan.options.variable_bytes_min, "shorter variables skip the paper's first pass");
    app.add_flag("--all", plan.is_all, "every pipeline with every block size in every group size");
    app.add_flag("--one-group", plan.is_largest_group_alone, "all ranks in one group, no other");
    app.add_flag("--damage", plan.is_damaged, "changes a byte of what was stored, to see that it is noticed");
    // Memory stays the program's: what the system takes to give pages anew is not the codecs', and on virtual machines more than theirs.
    ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
    ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
    try {
        app.parse(count, arguments);
        return cairn::bench::run(folders, plan, export_folder);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cairn_codecs_tables: %s\n", error.what());
        return 1;
    }
}
