// Cairn as the benchmark's application uses it: one session over all ranks, one region. Every function is collective; what goes wrong ends the
// benchmark with Cairn's own words.
#pragma once

#include <cairn/cairn_mpi.h>

#include <cstdint>
#include <string>

#include "image.hpp"
#include "team.hpp"

namespace bench {

class CairnSession {
  public:
    struct Where {
        std::string name, persistent;
        std::string node;  // of a virtual node; empty: the host's
    };
    struct Times {
        double capture_s = 0;  // the application is blocked: first begin to last seal
        double flush_s = 0;    // last seal to the commit as seen by the first rank
    };
    struct Restored {
        double seconds = 0;
        bool same = false;  // every byte is what the version had
    };

    CairnSession(const Team& team, Image& image) : team_(team), image_(image) {}

    double open_s(const Where& where);
    // Until it is committed, and what retention takes away for it is gone: not while something else is measured.
    Times checkpoint(std::uint64_t version);
    // Not until it is committed. Seconds blocked, of this rank.
    double capture(std::uint64_t version);
    void wait(std::uint64_t version);
    Restored restore(std::uint64_t version);
    std::uint64_t newest();
    void close();

  private:
    void check(int code, const std::string& what) const;
    void settle(std::uint64_t older);

    const Team& team_;
    Image& image_;
    Where where_;
    cairn_session* session_ = nullptr;
    bool never_goes_ = false;  // retention does not take old versions away: no use to wait for it
};

}  // namespace bench
