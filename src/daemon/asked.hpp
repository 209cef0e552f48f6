// AskedImages: images in no scratch (capture.mode = through). Each is in the memory of a rank that waits in its checkpoint, and is fetched from there piece by
// piece: the engine wants a range, the rank's next answer (control::Wanted) names it and a window, the rank writes it there and says so (control::Give).
//
// The image lives as long as the connection over which it was offered. When that ends first nobody can give its bytes any more, and its version is given up:
// by the attempt that finds no bytes, which names the rank, or a little later by itself, where no attempt is under way.
//
// A window that a rank was told of, and never answered for, is nobody's any more: who knows what is written to it, and when.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "daemon/server.hpp"
#include "engine/router/node.hpp"
#include "world/gate.hpp"
#include "world/real/memory.hpp"

namespace cairn {

class AskedImages {
  public:
    // version_wait: how long who gives up a version tries to say so.
    AskedImages(World world, Node& node, Nanos version_wait);

    // The image's number. What was offered over the connection before is over.
    Result<std::uint64_t> offer(ConnectionId from, ImageHeader header);
    void disconnected(ConnectionId from);

    struct Piece;
    struct Image {
        Image(Clock& c, ConnectionId whose, std::uint64_t n, const ImageHeader& header)
            : clock(c), from(whose), number(n), key(header.key), rank(header.rank), news(c) {}
        Clock& clock;
        const ConnectionId from;
        const std::uint64_t number;
        const VersionKey key;
        const Rank rank;
        bool is_gone = false;
        std::map<std::uint64_t, std::shared_ptr<Piece>> pieces;  // wanted, and not given yet
        std::uint64_t last_piece = 0;
        std::set<std::uint64_t> windows;  // that the rank has
        Event news;                       // a piece is wanted, or the version's state may have changed
    };
    // Null: none of that number was offered over this connection, or it was the one before.
    std::shared_ptr<Image> find(ConnectionId from, std::uint64_t number) const;
    // The rank says that it wrote this piece.
    static void given(Image& image, std::uint64_t piece);
    static void let_go(Image& image);
    // What it has not been told yet.
    static std::optional<control::Wanted> next_wanted(Image& image);

  private:
    class Source;
    Task<void> watch(std::shared_ptr<Image> image);

    World world_;
    Node& node_;
    const Nanos version_wait_;
    std::map<std::uint64_t, std::shared_ptr<Image>> images_;  // those whose rank is there
    std::uint64_t last_ = 0;
    Gate gate_;  // last: its coroutines refer to all of the above
};

}  // namespace cairn
