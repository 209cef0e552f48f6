// The meeting, the steps, and cleaning up after both.
#include "client/rendezvous.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/checksum.hpp"
#include "client/files.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t message_bytes_max = 256ull << 20;
constexpr std::uint64_t leave_wait_ms = 2000;

std::string digest(const std::string& roster) { return Id128{0, checksum(as_bytes(roster))}.hex(); }

Result<std::string> read_text(const std::string& path) {
    TRY_ASSIGN(const Bytes bytes, files::read_whole(path, message_bytes_max));
    return std::string(as_text(bytes));
}

// The others wait until the deadline anyhow: a rank that gave up earlier would leave them in the lurch. A directory that
// another rank has just made may be there on one server of a file system and not yet on the next: then it says that there
// is none.
bool may_pass_for_names(const Status& status) {
    return may_pass(status) || status.code() == Code::not_found;
}

// What ends a wait before its deadline.
using Vain = std::function<bool()>;

// A file that another rank is about to write. A first byte says that it is whole and tells it from a network file
// system's empty view.
Result<Bytes> wait_for_file(const std::string& path, Deadline deadline, const Vain& vain = {}) {
    Backoff backoff;
    for (;;) {
        auto bytes = files::read_whole(path, message_bytes_max);
        if (bytes.ok() && !bytes->empty() && bytes->front() == std::byte{1})
            return Bytes(bytes->begin() + 1, bytes->end());
        const bool failed = !bytes.ok() && bytes.code() != Code::not_found;
        if (failed && !may_pass(bytes.status())) return bytes.status();
        if ((vain && vain()) || !backoff.pause(deadline)) return failed ? bytes.status() : deadline_passed("nothing in " + path);
    }
}

Status write_patiently(const std::string& path, const Bytes& bytes, Deadline deadline, const Vain& vain = {}) {
    const auto passes = [&](const Status& status) { return may_pass_for_names(status) && !(vain && vain()); };
    return files::patiently(deadline, passes, [&] { return files::write_aside(path, bytes); });
}

// Of the meeting; others make it, too.
Status make_directory(const std::string& path, const std::string& what, Deadline deadline) {
    return files::patiently(deadline, may_pass_for_names, [&]() -> Status {
        if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
        return Status::from_errno(errno, "can not make " + what + path);
    });
}

Status publish(const std::string& path, const Bytes& bytes, Deadline deadline, const Vain& vain = {}) {
    Bytes marked(1 + bytes.size(), std::byte{1});
    std::copy(bytes.begin(), bytes.end(), marked.begin() + 1);
    return write_patiently(path, marked, deadline, vain);
}

}  // namespace

Result<std::unique_ptr<FileExchange>> FileExchange::meet(const std::string& directory, Rank rank, std::uint32_t ranks,
                                                         Deadline deadline) {
    std::unique_ptr<FileExchange> exchange(new FileExchange(directory, rank, ranks));
    TRY_ASSIGN(const Id128 nonce, files::random_id());
    exchange->nonce_ = nonce.hex();
    TRY(exchange->join(deadline));
    return exchange;
}

Status FileExchange::join(Deadline deadline) {
    // Until this rank's first file is in it, who met here before, or gc, may take the empty directory away.
    const std::string mine = directory_ + "/join-" + std::to_string(rank());
    const Status entered = files::patiently(deadline, may_pass_for_names, [&]() -> Status {
        TRY(make_directory(directory_, "the meeting place of the ranks, ", deadline));
        return files::write_aside(mine, to_bytes(nonce_));
    });
    TRY(entered);
    TRY(rank() == 0 ? gather_roster(deadline) : accept_roster(deadline));
    work_ = directory_ + "/x-" + digest(roster_);
    TRY(make_directory(work_, "", deadline));
    met_ = true;
    return {};
}

// Rank 0: steps 2 and 4.
Status FileExchange::gather_roster(Deadline deadline) {
    Backoff backoff;
    std::vector<Rank> missing, silent;
    for (;;) {
        std::string seen;
        missing.clear();
        silent.clear();
        for (Rank r = 0; r < ranks(); ++r) {
            const auto joined = read_text(directory_ + "/join-" + std::to_string(r));
            if (!joined.ok()) missing.push_back(r);
            if (r == 0 && joined.ok() && *joined != nonce_)
                return {Code::already_exists, "another process says that it is rank 0 of this job (" + directory_ +
                                                  "): give each job its own id"};
            seen += (joined.ok() ? *joined : "-") + "\n";
        }
        if (missing.empty()) {
            if (seen != roster_) TRY(write_patiently(directory_ + "/roster", to_bytes(seen), deadline));
            roster_ = seen;
            for (Rank r = 1; r < ranks(); ++r) {
                const auto ack = read_text(directory_ + "/ack-" + std::to_string(r));
                if (!ack.ok() || *ack != digest(roster_)) silent.push_back(r);
            }
            if (silent.empty()) return write_patiently(directory_ + "/final", to_bytes(digest(roster_)), deadline);
        }
        if (!backoff.pause(deadline)) {
            std::vector<Rank>& who = missing.empty() ? silent : missing;
            return deadline_passed(rank_list(who) + " of " + std::to_string(ranks()) +
                                   " never called open with this job id (" + directory_ + ")");
        }
    }
}

// Other ranks: step 3.
Status FileExchange::accept_roster(Deadline deadline) {
    Backoff backoff;
    const std::string mine = directory_ + "/join-" + std::to_string(rank());
    for (;;) {
        const auto joined = read_text(mine);
        if (joined.ok() && *joined != nonce_)
            return {Code::already_exists, "another process says that it is rank " + std::to_string(rank()) +
                                              " of this job (" + directory_ +
                                              "): give each process its own rank and each job its own id"};
        const auto roster = read_text(directory_ + "/roster");
        std::size_t at = 0;
        for (Rank r = 0; roster.ok() && r < rank() && at != std::string::npos; ++r) {
            at = roster->find('\n', at);
            if (at != std::string::npos) ++at;
        }
        if (roster.ok() && at != std::string::npos && roster->compare(at, nonce_.size() + 1, nonce_ + "\n") == 0) {
            if (*roster != roster_)
                TRY(write_patiently(directory_ + "/ack-" + std::to_string(rank()), to_bytes(digest(*roster)), deadline));
            roster_ = *roster;
            const auto agreed = read_text(directory_ + "/final");
            if (agreed.ok() && *agreed == digest(roster_)) return {};
        }
        if (!backoff.pause(deadline)) {
            if (roster_.empty())
                return deadline_passed("rank 0 of " + std::to_string(ranks()) +
                                       " never called open with this job id, or waits for others (" + directory_ + ")");
            return deadline_passed("rank 0 waits for others: not all of " + std::to_string(ranks()) +
                                   " ranks called open (" + directory_ + ")");
        }
    }
}

std::string FileExchange::step_file(std::uint64_t step, const std::string& who) const {
    return work_ + "/" + std::to_string(step) + "-" + who;
}

Result<std::vector<Bytes>> FileExchange::do_allgather(const Bytes& mine, Deadline deadline) {
    const std::uint64_t step = step_++;
    std::vector<Bytes> all(ranks());
    if (rank() != 0) {
        const Vain vain = [this] { return leaving_ && nobody_waits(); };
        const Status told = publish(step_file(step, std::to_string(rank())), mine, deadline, vain);
        if (!told.ok() && vain()) return all;
        TRY(told);
        auto joined = wait_for_file(step_file(step, "all"), deadline, vain);
        if (!joined.ok() && vain()) return all;
        if (!joined.ok())
            return joined.status().within("a rank ended or never made this collective call; rank 0 would name it");
        std::size_t at = 0;
        for (Bytes& each : all) {
            std::uint64_t length = 0;
            if (joined->size() - at < sizeof length)
                return corrupt("torn exchange file of step " + std::to_string(step));
            std::memcpy(&length, joined->data() + at, sizeof length);
            at += sizeof length;
            if (joined->size() - at < length) return corrupt("torn exchange file of step " + std::to_string(step));
            each.assign(joined->begin() + static_cast<std::ptrdiff_t>(at),
                        joined->begin() + static_cast<std::ptrdiff_t>(at + length));
            at += length;
        }
        return all;
    }
    Bytes joined;
    std::vector<Rank> missing;
    for (Rank r = 0; r < ranks(); ++r) {
        auto bytes = r == 0 ? Result<Bytes>(mine) : wait_for_file(step_file(step, std::to_string(r)), deadline);
        if (!bytes.ok()) {
            if (bytes.code() != Code::deadline) return bytes.status();
            missing.push_back(r);
            continue;
        }
        all[r] = std::move(bytes).value();
        const std::uint64_t length = all[r].size();
        const auto* prefix = reinterpret_cast<const std::byte*>(&length);
        joined.insert(joined.end(), prefix, prefix + sizeof length);
        joined.insert(joined.end(), all[r].begin(), all[r].end());
    }
    if (!missing.empty()) return deadline_passed(rank_list(missing) + " never made this collective call");
    // Everybody stands at this step, so nobody needs what came before it.
    for (const std::string& path : read_by_all_next_) ::unlink(path.c_str());
    read_by_all_next_.clear();
    TRY(publish(step_file(step, "all"), joined, deadline));
    read_by_all_next_.push_back(step_file(step, "all"));
    for (Rank r = 1; r < ranks(); ++r) ::unlink(step_file(step, std::to_string(r)).c_str());
    return all;
}

Result<Bytes> FileExchange::do_broadcast(const Bytes& of_rank_0, Deadline deadline) {
    const std::uint64_t step = step_++;
    if (rank() != 0) {
        auto bytes = wait_for_file(step_file(step, "all"), deadline);
        if (!bytes.ok()) return bytes.status().within("rank 0 ended or never made this collective call");
        return bytes;
    }
    TRY(publish(step_file(step, "all"), of_rank_0, deadline));
    read_by_all_next_.push_back(step_file(step, "all"));
    return of_rank_0;
}

Status FileExchange::leave(Deadline deadline) {
    leaving_ = true;
    return agree({}, deadline);
}

// Best effort: of a meeting that does not tell, gc only says that it is there.
void FileExchange::serves(Id128 incarnation) {
    if (rank() == 0) static_cast<void>(files::write_aside(work_ + "/incarnation", to_bytes(incarnation.hex())));
}

// Rank 0 takes what was agreed on away when it goes.
bool FileExchange::nobody_waits() const {
    const auto agreed = read_text(directory_ + "/final");
    return agreed.code() == Code::not_found || (agreed.ok() && *agreed != digest(roster_));
}

// Only what carries this meeting's nonces goes: another run with the same job id may be meeting here already.
void FileExchange::leave_join() {
    const std::string join = directory_ + "/join-" + std::to_string(rank()),
                      ack = directory_ + "/ack-" + std::to_string(rank());
    const auto joined = read_text(join);
    if (joined.ok() && *joined == nonce_) ::unlink(join.c_str());
    const auto acked = read_text(ack);
    if (acked.ok() && !roster_.empty() && *acked == digest(roster_)) ::unlink(ack.c_str());
}

bool FileExchange::all_are_done() const {
    for (Rank r = 0; r < ranks(); ++r)
        if (!files::read_whole(step_file(step_, "done-" + std::to_string(r)), message_bytes_max).ok()) return false;
    return true;
}

void FileExchange::clear_away() {
    for (const char* name : {"/roster", "/final"}) {
        const auto text = read_text(directory_ + name);
        if (text.ok() && (*text == roster_ || *text == digest(roster_))) ::unlink((directory_ + name).c_str());
    }
    std::error_code ignored;
    std::filesystem::remove_all(work_, ignored);
    ::rmdir(directory_.c_str());  // fails while somebody else meets here, as it should
}

FileExchange::~FileExchange() {
    leave_join();
    if (!met_) return;
    const Deadline deadline = Deadline::in_ms(leave_wait_ms);
    const std::string mine = step_file(step_, "done-" + std::to_string(rank()));
    if (parting_) {
        static_cast<void>(publish(mine, {}, deadline));
        if (all_are_done()) clear_away();
        return;
    }
    if (rank() != 0) {
        static_cast<void>(publish(mine, {}, deadline, [this] { return nobody_waits(); }));
        if (nobody_waits()) ::rmdir(directory_.c_str());  // we are the last, or it fails
        return;
    }
    for (Rank r = 1; r < ranks(); ++r)
        static_cast<void>(wait_for_file(step_file(step_, "done-" + std::to_string(r)), deadline));
    clear_away();
}

}  // namespace cairn
