// A job as it is on record once a session of it is open: nothing is committed for a job that is not.
#pragma once

#include <filesystem>
#include <fstream>

#include "catalog/layout.hpp"
#include "format/lineage.hpp"
#include "model/types.hpp"

namespace cairn {

inline void put_on_record(const Layout& layout, const Roster& roster) {
    OpenRecord open;
    open.incarnation = roster.incarnation;
    open.epoch = roster.epoch;
    open.ranks = roster.ranks;
    open.host = "test";
    open.pid = 1;
    const Bytes record = encode_open_record(open);
    std::filesystem::create_directories(layout.lineage(roster.name));
    std::ofstream(layout.lineage_open(roster.name, roster.epoch), std::ios::binary)
        .write(reinterpret_cast<const char*>(record.data()), static_cast<std::streamsize>(record.size()));
}

}  // namespace cairn
