// FileExchange: ranks that know nothing of each other but a rank, a number of ranks and a job id meet through files in
// a directory that all of them see, <persistent>/.cairn/rendezvous/<job>, and go on talking through files there.
//
// How they meet, so that leftovers of a dead run of the same job id can not take part:
//  1. every rank writes join-<rank> with a nonce drawn now;
//  2. rank 0 writes roster: the nonces it sees, its own among them; again whenever one changes;
//  3. a rank believes only a roster with its own nonce, and answers ack-<rank>: which roster it believes;
//  4. rank 0 writes final when all acks name the roster that stands. A rank that sees its roster final has met
//     everybody: each of the nonces was drawn by a live process that had read rank 0's live nonce.
// Every file appears whole (written aside, renamed). Each step then is a file <step>-<rank> from every rank and
// <step>-all from rank 0, in a directory x-<roster's digest> of this meeting's own. Who is killed leaves all of it behind; the file
// `incarnation` there tells `cairn gc` whose it is, and so whether that job is over (cli/gc_meetings.cpp).
#pragma once

#include <string>

#include "client/exchange.hpp"

namespace cairn {

class FileExchange final : public Exchange {
  public:
    // `directory` is made when it is not there; its parent must exist. deadline: names the ranks that never came.
    static Result<std::unique_ptr<FileExchange>> meet(const std::string& directory, Rank rank, std::uint32_t ranks,
                                                      Deadline deadline);
    ~FileExchange() override;
    Status leave(Deadline deadline) override;
    void part() override { parting_ = true; }
    void serves(Id128 incarnation) override;

  private:
    FileExchange(std::string directory, Rank rank, std::uint32_t ranks)
        : Exchange(rank, ranks), directory_(std::move(directory)) {}
    Status join(Deadline deadline);
    Status gather_roster(Deadline deadline);
    Status accept_roster(Deadline deadline);
    void leave_join();
    bool nobody_waits() const;
    bool all_are_done() const;
    void clear_away();
    Result<std::vector<Bytes>> do_allgather(const Bytes& mine, Deadline deadline) override;
    Result<Bytes> do_broadcast(const Bytes& of_rank_0, Deadline deadline) override;
    std::string step_file(std::uint64_t step, const std::string& who) const;

    std::string directory_;
    std::string work_;  // directory of the steps of this meeting
    std::string nonce_;
    std::string roster_;  // rank 0's nonce and everybody's: what was agreed on
    std::uint64_t step_ = 0;
    bool met_ = false, leaving_ = false, parting_ = false;
    std::vector<std::string> read_by_all_next_;  // rank 0: may go once the next allgather has everybody
};

}  // namespace cairn
