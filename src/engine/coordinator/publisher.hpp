// Publisher: the publication of one manifest is the commit. Its name carries the incarnation, and publishing never replaces (rule 3), so of
// all who may try - this coordinator, an older one that was paused, one who gives the version up - exactly one wins, and everybody else
// reads from the file who it was. Whoever gives a version up publishes a tombstone under the same name: after that nobody can commit it, and
// its parts may be removed.
//
// All of this goes by paths, and a path leads wherever the system was told to mount something. So who decides makes sure that it sees what the
// job saw when it opened: the job's own record (check_record) before anything is published or believed, and after it is published; and every
// part under its name (check_parts).
#pragma once

#include <map>
#include <set>

#include "engine/coordinator/side.hpp"
#include "world/storage.hpp"

namespace cairn::engine {

class Publisher : CoordinatorRole {
  public:
    explicit Publisher(Common& common);

    // A new coordinator looks before it acts. ok: committed, and durably so; not_found: nobody has decided yet; superseded: given up.
    Task<Status> look(FlightPtr flight);
    // All parts are durable: PartsDone of every leader is in.
    Task<Status> commit(FlightPtr flight);
    // The tombstone, and nothing of attempts stays. ok: it stands; superseded: another one does.
    Task<Status> give_up(FlightPtr flight);
    // Of a version that is committed, where its parts are safetensors files.
    Task<void> index_tensors(FlightPtr flight);
    // After attempts failed.
    Task<void> sweep(FlightPtr flight);
    Task<void> remove_attempt(FlightPtr flight, const Contest& contest);

  private:
    Status name_parts(const Flight& flight, const Contest& contest, Manifest& manifest) const;
    Task<Status> publish(FlightPtr flight, Manifest manifest);
    Task<Status> check_superseded(FlightPtr flight);
    // What the version's directories below roots hold, by the root's number (PartInfo::root).
    using Listed = std::map<std::uint32_t, std::vector<DirectoryEntry>>;
    Task<Result<Listed>> list_roots(FlightPtr flight, const Manifest& manifest);
    Task<Status> check_parts(FlightPtr flight, const Manifest& manifest, const Listed& listed);
    std::vector<std::string> others(const Flight& flight, std::uint32_t root, const std::vector<DirectoryEntry>& entries, const std::set<std::string>& named) const;
    Task<void> clean_up(FlightPtr flight, bool is_tombstone, std::set<std::string> named);
    Task<void> clean_up_below(FlightPtr flight, std::uint32_t root, std::set<std::string> named, Nanos deadline);
    Task<std::vector<std::string>> roots_that_may_hold(FlightPtr flight);
};

}  // namespace cairn::engine
