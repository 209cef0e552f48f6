// Ahead: a thread of a session that prepares the next checkpoint while the application computes: it asks for a slot, and maps it. It works when something has
// changed (what is protected, or a version was taken), and sleeps otherwise.
//
// In the application's own class: what it does a capture would do, and the application would wait for it; and a thread of a lower class that holds the address
// space's lock could keep the application from its own memory. It takes no signals.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace cairn {

class Ahead {
  public:
    // A short turn of work; when to take the next one, or none: nothing is left to do until something changes.
    using Turn = std::function<std::optional<std::chrono::milliseconds>()>;

    explicit Ahead(Turn turn);
    Ahead(const Ahead&) = delete;
    // Waits for the turn that is being taken. In a forked child, where there is no such thread, it leaves everything as it is.
    ~Ahead();
    // From any thread. What changes again within settle is one change.
    void changed();
    static constexpr std::chrono::milliseconds settle{10};

  private:
    struct State;
    static void run(State& state);
    const pid_t process_;
    std::shared_ptr<State> state_;
    std::unique_ptr<std::thread> thread_;  // null: none could be started
};

}  // namespace cairn
