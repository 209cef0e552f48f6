// Part file: the leaders of one part between them, from the file's creation to its footer.
//
//   first leader                         other leaders of the part
//   creates the file, sizes it
//   Opened, again and again  --------->  open it, write their own ranges (writer.hpp)
//   writes its own range
//   fsync                                fsync, each its own descriptor
//                            <---------  ShareDone, piece by piece until ShareKept: the runs
//   all shares in: reads a little of each, looks at the size, footer, the size cut to what it is, fsync, fsync of the directory
//
// The file has its size before a second leader opens it: a GlusterFS volume with features.shard loses bytes of a file that several nodes make grow, and
// everywhere else it saves the locks that growing costs. A safetensors file has one leader, and gets its header behind everything else (tensor_file.hpp). The footer comes after every leader's fsync was reported, its own
// fsync last. Nobody but the first leader creates, so a leader that wakes up after its attempt meets no file, or one that nobody names.
#pragma once

#include "engine/leader/side.hpp"

namespace cairn::engine {

class PartFile : LeaderRole {
  public:
    PartFile(Common& common, BufferRing& ring);

    Task<Status> open(Attempt& attempt, PartState& part);
    // To the leaders whose share is still to come; also a sign of life.
    void tell_opened(Attempt& attempt, PartState& part);
    // Of what another leader than the first one wrote, for the first one to look for.
    Task<void> keep_sample(PartState& part, Slice data, std::uint64_t offset);
    Task<void> keep_local_sample(std::shared_ptr<Attempt> attempt, PartState& part, HeldImage& held, Slice data, std::uint64_t offset);
    // All of this leader's data of the part are written. ok: durable, and the first leader knows.
    Task<Status> finish_share(Attempt& attempt, PartState& part);
    // Of an attempt that failed elsewhere: parts that were complete here, and never reported, are in no manifest and in nobody's books.
    Task<void> remove_complete(Attempt& attempt);
    // The file, and its index where that lies beside it. Best effort.
    Task<void> remove(const PartState& part);

    void on_opened(Flight& flight, const message::Opened& opened);
    void on_share_done(Flight& flight, NodeIndex from, message::ShareDone done);
    void on_share_kept(Flight& flight, const message::ShareKept& kept);

  private:
    Task<Status> create(const Attempt& attempt, PartState& part);
    Task<Status> report_share(Attempt& attempt, PartState& part);
    Task<Status> gather_shares(Attempt& attempt, PartState& part);
    Task<Status> check_shares(Attempt& attempt, PartState& part);
    Task<Status> write_footer(Attempt& attempt, PartState& part);
};

}  // namespace cairn::engine
