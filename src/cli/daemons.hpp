// Daemons: those of this user on this host that work for one persistent directory, asked over their sockets.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/place.hpp"
#include "client/connection.hpp"

namespace cairn::cli {

// The node meant where none is named: $CAIRN_NODE, else the host's name up to its first dot, as clients and cairnd have
// it.
std::string this_node();

// Where to look: --node, or every node that has a directory in scratch.
Result<std::vector<ScratchLayout>> chosen_daemons(const Settings& settings, const Arguments& arguments);

// A daemon that answered Hello; nothing when none runs there. Other failures are errors.
struct Reached {
    std::unique_ptr<Connection> connection;
    control::Welcome welcome;
};
Result<std::optional<Reached>> reach(const ScratchLayout& scratch, std::uint64_t wait_ms);

// A daemon that was asked and did not answer, and why. The others are asked all the same.
struct Silent {
    ScratchLayout place;
    Status why;
    std::string text() const;  // a line
};

// Asks all places at the same time, each on a thread of its own, so that one that stands still costs no other its time. `tell` is called here, with what
// came since the last call, in the order of places: first when all have answered or `soon` is over, then whenever more have come. An answer is what `ask`
// makes of a place; one that nobody lives at is none.
template <class Answer>
using Told = std::vector<std::pair<ScratchLayout, Result<std::optional<Answer>>>>;
template <class Answer>
void ask_all(const std::vector<ScratchLayout>& places, const std::function<Result<std::optional<Answer>>(const ScratchLayout&)>& ask,
             const std::function<void(Told<Answer>)>& tell, std::chrono::milliseconds soon = std::chrono::milliseconds(1000)) {
    std::mutex mutex;
    std::condition_variable news;
    std::vector<std::optional<Result<std::optional<Answer>>>> answers(places.size());
    std::size_t fresh = 0;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < places.size(); ++i)
        threads.emplace_back([&, i] {
            Result<std::optional<Answer>> answer = ask(places[i]);
            const std::lock_guard lock(mutex);
            answers[i].emplace(std::move(answer));
            ++fresh;
            news.notify_all();
        });
    const auto until = std::chrono::steady_clock::now() + soon;
    for (std::size_t told = 0; told < places.size();) {
        std::unique_lock lock(mutex);
        news.wait_until(lock, until, [&] { return told + fresh == places.size(); });
        news.wait(lock, [&] { return fresh > 0; });
        Told<Answer> now;
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (!answers[i]) continue;
            now.emplace_back(places[i], *std::move(answers[i]));
            answers[i].reset();
        }
        told += std::exchange(fresh, 0);
        lock.unlock();
        tell(std::move(now));
    }
}
// "process 17"
std::string process_text(pid_t process);
// ok where all answered; else the first one's code, and what there is to say of each.
Status silent_status(const std::vector<Silent>& silent);
// The same for scripts: a list of where, and why.
nlohmann::ordered_json silent_json(const std::vector<Silent>& silent);

// What `cairn status` prints, made from answers; `before` are those of `seconds` ago (empty: none), for the rates.
// `columns`: of the terminal, 0 where there is none; what has no room in it is left out, the least important first.
std::string status_text(const std::vector<control::NodeStatus>& now, const std::vector<control::NodeStatus>& before,
                        double seconds, std::size_t columns);
std::string status_json(const std::vector<control::NodeStatus>& now, const std::vector<Silent>& silent = {});

}  // namespace cairn::cli
