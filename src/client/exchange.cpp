// The collectives and the agreement built on them.
#include "client/exchange.hpp"

#include <algorithm>
#include <cstring>

#include "client/guarded.hpp"
#include "client/packer.hpp"

namespace cairn {

Result<std::vector<Bytes>> Exchange::allgather(const Bytes& mine, Deadline deadline) {
    TRY(broken_);
    auto all = do_allgather(mine, deadline);
    if (!all.ok())
        broken_ =
            all.status().within("an earlier exchange between the ranks failed; close this session and open again");
    return all;
}

Result<Bytes> Exchange::broadcast(const Bytes& of_rank_0, Deadline deadline) {
    TRY(broken_);
    auto bytes = do_broadcast(of_rank_0, deadline);
    if (!bytes.ok())
        broken_ =
            bytes.status().within("an earlier exchange between the ranks failed; close this session and open again");
    return bytes;
}

Status Exchange::agree(const Status& mine, Deadline deadline) {
    Packer packer;
    if (!mine.ok()) packer.status(mine);
    TRY_ASSIGN(const std::vector<Bytes> all, allgather(packer.take(), deadline));
    for (Rank rank = 0; rank < all.size(); ++rank) {
        if (all[rank].empty()) continue;
        Unpacker unpacker(all[rank]);
        Status status = unpacker.status();
        if (!unpacker.ok() || status.ok())
            return {Code::internal, "rank " + std::to_string(rank) + " sent what can not be read"};
        return ranks_ == 1 ? status : std::move(status).within("rank " + std::to_string(rank));
    }
    return {};
}

Result<std::vector<Bytes>> SelfExchange::do_allgather(const Bytes& mine, Deadline) { return std::vector<Bytes>{mine}; }
Result<Bytes> SelfExchange::do_broadcast(const Bytes& of_rank_0, Deadline) { return of_rank_0; }

CallerExchange::~CallerExchange() {
    if (!calls_.release) return;
    static_cast<void>(call_application("release", [&] {  // whom could it tell?
        calls_.release(calls_.context);
        return 0;
    }));
}

namespace {
// The application's own collective, by the word for it.
template <class Call>
Status exchanged(const char* what, Call&& call) {
    const auto failed = [&](const std::string& how) {
        return unavailable(std::string("the ranks could not exchange data (") + what + how +
                           "): a rank never called, ended, or its communication failed");
    };
    return guarded(
        [&] {
            const int code = call();
            return code == 0 ? Status() : failed(" gave " + std::to_string(code));
        },
        [&](const char* text, Code) { return failed(std::string(" threw: ") + text); });
}
constexpr std::uint64_t contribution_bytes_max = 1ull << 30;
}  // namespace

// Sizes first, then everybody's bytes padded to the largest: contributions are small and of much the same size.
Result<std::vector<Bytes>> CallerExchange::do_allgather(const Bytes& mine, Deadline deadline) {
    const std::uint64_t size = mine.size();
    std::vector<std::uint64_t> sizes(ranks());
    TRY(exchanged("allgather", [&] {
        return calls_.allgather(calls_.context, &size, sizes.data(), sizeof size, deadline.left_ms());
    }));
    const std::uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
    if (largest > contribution_bytes_max) return Status(Code::internal, "allgather returned sizes that no rank sent");
    std::vector<Bytes> all(ranks());
    if (largest == 0) return all;
    Bytes padded(mine);
    padded.resize(largest);
    Bytes gathered(largest * ranks());
    TRY(exchanged("allgather", [&] {
        return calls_.allgather(calls_.context, padded.data(), gathered.data(), largest, deadline.left_ms());
    }));
    for (Rank rank = 0; rank < ranks(); ++rank) {
        const std::byte* from = gathered.data() + rank * largest;
        all[rank].assign(from, from + sizes[rank]);
    }
    return all;
}

Result<Bytes> CallerExchange::do_broadcast(const Bytes& of_rank_0, Deadline deadline) {
    std::uint64_t size = of_rank_0.size();
    TRY(exchanged("broadcast",
                  [&] { return calls_.broadcast(calls_.context, &size, sizeof size, deadline.left_ms()); }));
    if (size > contribution_bytes_max)
        return Status(Code::internal, "broadcast returned a size that rank 0 did not send");
    Bytes bytes(rank() == 0 ? of_rank_0 : Bytes());
    bytes.resize(size);
    if (size == 0) return bytes;
    TRY(exchanged("broadcast",
                  [&] { return calls_.broadcast(calls_.context, bytes.data(), size, deadline.left_ms()); }));
    return bytes;
}

std::string rank_list(const std::vector<Rank>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t end = i + 1;
        while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
        if (i != 0) text += ", ";
        text += std::to_string(ranks[i]);
        if (end - i > 1) text += "-" + std::to_string(ranks[end - 1]);
        i = end;
    }
    return text;
}

}  // namespace cairn
