#include "session.hpp"

#include <unistd.h>

#include <cstdio>

namespace bench {

namespace {

constexpr std::uint64_t wait_ms = 600'000;
constexpr double settle_s = 5;

}  // namespace

void CairnSession::check(int code, const std::string& what) const {
    if (code == CAIRN_OK) return;
    const std::string who = "rank " + std::to_string(team_.rank()) + ": ";
    fail(who + what + ": " + cairn_status_name(code) + ": " + cairn_last_error(session_));
}

double CairnSession::open_s(const Where& where) {
    where_ = where;
    cairn_options open = CAIRN_OPTIONS;
    open.name = where_.name.c_str();
    open.node = where_.node.empty() ? nullptr : where_.node.c_str();
    const double begin = now_s();
    check(cairn_open_mpi(team_.comm(), &open, &session_), "opening");
    const double took = team_.span_s(begin, now_s());
    const std::uint64_t shape[] = {image_.memory().bytes() / 8};
    check(cairn_protect(session_, "image", image_.memory().data(), CAIRN_U64, 1, shape), "protecting");
    return took;
}

CairnSession::Times CairnSession::checkpoint(std::uint64_t version) {
    team_.meet();
    team_.meet();
    const double begin = now_s();
    capture(version);
    const double sealed = now_s();
    wait(version);
    const double committed = now_s();
    const Times times = {team_.span_s(begin, sealed), team_.least(committed) - team_.most(sealed)};
    settle(version - 1);
    return times;
}

double CairnSession::capture(std::uint64_t version) {
    const double begin = now_s();
    check(cairn_checkpoint(session_, version), "checkpoint");
    return now_s() - begin;
}

void CairnSession::wait(std::uint64_t version) { check(cairn_wait(session_, version, CAIRN_COMMITTED, wait_ms), "waiting for the commit"); }

// The daemons remove the older version after the commit.
void CairnSession::settle(std::uint64_t older) {
    if (team_.rank() == 0 && older > 0 && !never_goes_) {
        const std::string path = where_.persistent + "/" + where_.name + "/" + std::to_string(older);
        const double until = now_s() + settle_s;
        while (::access(path.c_str(), F_OK) == 0 && now_s() < until) ::usleep(2000);
        never_goes_ = ::access(path.c_str(), F_OK) == 0;
    }
    team_.meet();
}

CairnSession::Restored CairnSession::restore(std::uint64_t version) {
    image_.spoil();
    team_.meet();
    team_.meet();
    const double begin = now_s();
    std::uint64_t restored = 0;
    check(cairn_restore(session_, version, &restored), "restoring");
    const double seconds = team_.span_s(begin, now_s());
    if (const char* warnings = cairn_warnings(session_); *warnings) std::fprintf(stderr, "%s", warnings);
    const std::string wrong = image_.differs(restored);
    if (!wrong.empty())
        std::fprintf(stderr, "bench: rank %d: restored data differs from version %llu at %s\n", team_.rank(),
                     static_cast<unsigned long long>(restored), wrong.c_str());
    return {seconds, team_.all(wrong.empty() && restored == version)};
}

std::uint64_t CairnSession::newest() {
    std::uint64_t newest = 0;
    check(cairn_newest(session_, &newest), "asking for the newest version");
    return newest;
}

void CairnSession::close() { check(cairn_close(session_), "closing"); }

}  // namespace bench
