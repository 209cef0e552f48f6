#include "daemon/epochs.hpp"

#include <ctime>

#include "base/log.hpp"
#include "format/lineage.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t open_bytes_max = 1 << 20;

std::string who_opened(const std::string& path, const Bytes& record) {
    const auto open = decode_open_record(record);
    if (!open.ok()) return path;
    char when[64] = "";
    const auto time = static_cast<std::time_t>(open->wall_time_s);
    std::tm parts{};
    if (::localtime_r(&time, &parts)) std::strftime(when, sizeof when, "%F %T", &parts);
    return "process " + std::to_string(open->pid) + " on " + open->host + ", " + when;
}

}  // namespace

Epochs::Epochs(World world, Layout layout, Nanos io_wait)
    : world_(world), layout_(std::move(layout)), io_wait_(io_wait), looked_(world.clock), gate_(world.clock) {}

Task<Status> Epochs::check(VersionKey key, std::uint64_t epoch, Nanos wait) {
    Look& last = looks_[key.incarnation];
    if (last.found.ok() && !last.under_way && last.version != key.version) {
        last.version = key.version;
        last.under_way = true;
        gate_.spawn(look(key, epoch));
    }
    const Nanos deadline = world_.clock.in(wait);
    // Not for the look of an earlier version: that one is stuck.
    while (last.under_way && last.version == key.version && world_.clock.now() < deadline)
        co_await looked_.wait(deadline);
    co_return last.found;
}

// But for the first, epochs are taken without gaps: one name to look for, mostly.
Task<void> Epochs::look(VersionKey key, std::uint64_t epoch) {
    const Nanos deadline = world_.clock.in(io_wait_);
    std::string who;
    for (;;) {
        const std::string path = layout_.lineage_open(key.name, ++epoch);
        const Result<Bytes> record = co_await read_file(world_.storage, path, open_bytes_max, deadline);
        if (record.code() == Code::not_found || may_pass(record.status())) break;  // or it can not be told, and the next version asks again
        who = record.ok() ? who_opened(path, *record) : path;                      // it is there, whatever became of it
    }
    Look& done = looks_[key.incarnation];
    done.under_way = false;
    if (!who.empty()) {
        done.found = {Code::superseded, "\"" + key.name + "\" was opened again after this session (" + who +
                                            "): two jobs write the same name; this one can not commit any more"};
        log_warning("job-superseded", {{"name", key.name}, {"incarnation", key.incarnation}, {"by", who}});
    }
    looked_.notify_all();
}

}  // namespace cairn
