// cairn_race: an MPI job that holds ranks on all nodes of a cluster and does what it is told, one command a line on rank 0's standard input,
// one answer a line ("@race " and JSON). The script `race` in this folder talks to it. The nodes are namespaces of one machine: one clock.
//
//   memcpy                             every rank copies its image
//   plain count= ranks= servers= bytes=   writers into files placed on servers; both lists in turns ("0,1,2")
//   file_per_rank | shared_file        baselines
//   file_per_rank_placed servers=      the first, onto servers in turns
//   veloc                              a file per rank by way of scratch, as VELOC does
//   collective files= hints=           MPI-IO; hints as KEY:VALUE with commas
//   adios2 | adios2_tuned | genericio  files= and what peers.hpp says; where they were built in
//   open | close                       a session of Cairn
//   checkpoint version=                capture, then flush
//   restore version=
//   application checkpoints= steps= step_ms= message= every= files= version=
//   end
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "application.hpp"
#include "image.hpp"
#include "options.hpp"
#include "peers.hpp"
#include "plain.hpp"
#include "session.hpp"
#include "team.hpp"
#include "veloc.hpp"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint32_t pause_us_most = 5000;

std::vector<int> numbers(const std::string& text) {
    std::vector<int> out;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) out.push_back(std::atoi(word.c_str()));
    return out;
}

Hints hints(const std::string& text) {
    Hints out;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) {
        const auto colon = word.find(':');
        if (colon == std::string::npos) fail("a hint is KEY:VALUE, not " + word);
        out.emplace_back(word.substr(0, colon), word.substr(colon + 1));
    }
    return out;
}

class Race {
  public:
    Race(const Team& team, const Options& options)
        : team_(team),
          options_(options),
          image_(image_bytes(options.number("size", 64u << 20), options.real("imbalance", 0), options.number("seed", 1), team.rank()),
                 options.number("seed", 1), team.rank()),
          copy_(image_.memory().bytes()),
          plain_{team, image_.memory(), options.text("directory"), options.number("chunk", 8u << 20)},
          cairn_(team, image_),
          peers_(adios2_peers()) {
        for (const Peer& peer : genericio_peers()) peers_.push_back(peer);
    }

    void run() {
        const std::uint64_t bytes = team_.sum(image_.memory().bytes());
        Json ready = {{"bytes", bytes}, {"image_bytes", team_.gather(static_cast<double>(image_.memory().bytes()))}, {"hosts", team_.hosts()}};
        for (const Peer& peer : peers_) ready["peers"].push_back(peer.name);
        if (!adios2_version().empty()) ready["libraries"]["ADIOS2"] = adios2_version();
        for (Json answer = ready;;) {
            if (team_.rank() == 0) std::cout << "@race " << answer.dump() << std::endl;
            std::string line;
            if (team_.rank() == 0 && !std::getline(std::cin, line)) line = "end";
            const Options command(team_.broadcast(line));
            if (command.verb() == "end") return;
            answer = obey(command);
        }
    }

  private:
    Json obey(const Options& command) {
        const std::string& verb = command.verb();
        const int files = static_cast<int>(command.number("files", 1));
        // Names are never used again: other nodes may for a moment believe what they knew of a name, and a file's server follows from it.
        plain_.tag = '-' + std::to_string(++commands_);
        team_.meet();
        if (verb == "memcpy") return seconds(plain_.copy(copy_));
        if (verb == "plain") return seconds(plain_.write(writers(command)));
        if (verb == "file_per_rank" || verb == "file_per_rank_placed") {
            const double took = plain_.file_per_rank(suffixes(command));
            plain_.remove_kept();
            return seconds(took);
        }
        if (verb == "veloc") {
            const VelocTimes times = as_veloc_does(plain_, options_.text("scratch"));
            return {{"seconds", times.flush_s}, {"blocked_s", times.copy_s}};
        }
        if (verb == "shared_file") return seconds(plain_.shared_file());
        if (verb == "collective") return seconds(plain_.collective(files, hints(command.text("hints"))));
        if (verb == "application") return application(command, files);
        for (const Peer& peer : peers_)
            if (verb == peer.name) return seconds(peer_s(team_, peer, image_.memory(), plain_.directory + "/" + peer.name + plain_.tag, command));
        return cairn(verb, command.number("version", 0));
    }

    Json cairn(const std::string& verb, std::uint64_t version) {
        if (verb == "open") return seconds(cairn_.open_s({options_.text("name", "race"), options_.text("persistent"), ""}));
        if (verb == "checkpoint") {
            image_.write_version(version);
            const CairnSession::Times times = cairn_.checkpoint(version);
            return {{"seconds", times.flush_s}, {"blocked_s", times.capture_s}};
        }
        if (verb == "restore") {
            const CairnSession::Restored restored = cairn_.restore(version);
            return {{"seconds", restored.seconds}, {"same", restored.same}};
        }
        if (verb != "close") fail("there is no command " + verb);
        cairn_.close();
        return seconds(0);
    }

    Json application(const Options& command, int files) {
        ApplicationPlan plan;
        plan.checkpoints = command.text("checkpoints", "none");
        plan.steps = static_cast<int>(command.number("steps", 60));
        plan.step_ms = static_cast<int>(command.number("step_ms", 800));
        plan.message_bytes = command.number("message", 4u << 20);
        plan.work_bytes = command.number("work", 0);
        plan.every = static_cast<int>(command.number("every", 60));
        plan.version = command.number("version", 1);
        plan.files = files;
        plan.distance = std::max(1, team_.ranks() / team_.hosts());
        const ApplicationTimes times = run_application(plan, team_, image_, copy_, plain_, cairn_);
        return {{"seconds", times.run_s},         {"blocked_s", times.blocked_s}, {"communicate_s", times.communicate_s},
                {"exchanges_s", times.exchanges_s}, {"compute_s", times.compute_s},
                {"finish_s", times.finish_s}, {"checkpoints", times.checkpoints}};
    }

    // The times of what blocks the application from begin to end.
    static Json seconds(double took) { return {{"seconds", took}, {"blocked_s", took}}; }

    Writers writers(const Options& command) const {
        Writers all;
        all.ranks = numbers(command.text("ranks"));
        all.suffixes = suffixes(command);
        all.count = static_cast<int>(command.number("count", static_cast<std::uint64_t>(team_.ranks())));
        all.bytes = command.number("bytes", 0);
        return all;
    }

    // With which the file system puts a file on each of the servers that the command names.
    std::vector<std::string> suffixes(const Options& command) const {
        std::vector<std::string> out;
        for (const int server : numbers(command.text("servers"))) {
            const std::string place = options_.text("place");
            const auto at = place.find("%d");
            out.push_back(at == std::string::npos ? place : place.substr(0, at) + std::to_string(server) + place.substr(at + 2));
        }
        return out;
    }

    const Team& team_;
    const Options& options_;
    Image image_;
    WarmMemory copy_;
    PlainFiles plain_;
    CairnSession cairn_;
    std::vector<Peer> peers_;
    int commands_ = 0;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const bench::Options options(argc, argv);
    {
        const bench::Team team(MPI_COMM_WORLD, bench::Team::Clock::one, bench::pause_us_most);
        if (options.text("directory").empty()) {
            if (team.rank() == 0) std::fprintf(stderr, "cairn_race is started by the script bench/race; see bench/race --help\n");
        } else {
            bench::Race(team, options).run();
        }
    }
    MPI_Finalize();
    return 0;
}
