#include "daemon/asked.hpp"

#include <utility>

#include "base/units.hpp"
#include "format/limits.hpp"

namespace cairn {

namespace {

constexpr Nanos notice_wait = second;        // for an attempt to find out by itself that an image is gone: it names the rank
constexpr Nanos one_cancel_wait = 10 * second;   // one try
constexpr Nanos gone_look_again = 100 * millisecond;

}  // namespace

struct AskedImages::Piece {
    Piece(Clock& clock, std::uint64_t n, std::uint64_t at, Slice slice) : number(n), offset(at), into(std::move(slice)), ended(clock) {}
    const std::uint64_t number, offset;  // in the image
    const Slice into;                    // all of a window's front
    bool is_told = false, is_given = false;
    Event ended;
};

class AskedImages::Source final : public ImageSource {
  public:
    explicit Source(std::shared_ptr<Image> image) : image_(std::move(image)) {}

    Result<BufferPtr> allocate(std::uint64_t bytes) override {
        TRY_ASSIGN(std::shared_ptr<SharedMemory> window, SharedMemory::allocate(bytes));
        return BufferPtr(std::move(window));
    }
    Task<Status> fill(std::uint64_t offset, Slice into, Nanos deadline) override {
        const std::shared_ptr<Image> image = image_;
        if (into.length == 0 && !image->is_gone) co_return Status();
        const auto piece = std::make_shared<Piece>(image->clock, ++image->last_piece, offset, std::move(into));
        if (!image->is_gone) image->pieces.emplace(piece->number, piece);
        image->news.notify_all();
        const auto is_awaited = [&] { return !piece->is_given && !image->is_gone && image->pieces.count(piece->number) != 0; };  // not, where its version has ended
        while (is_awaited() && image->clock.now() < deadline) co_await piece->ended.wait(deadline);
        if (piece->is_given) co_return Status();
        if (image->is_gone) co_return not_found("the process has ended, or has given its checkpoint up");
        if (!piece->is_told) image->pieces.erase(piece->number);  // else it may write yet, and the window waits for that
        co_return deadline_passed("rank " + std::to_string(image->rank) + " did not give bytes " + std::to_string(piece->offset) + "+" + std::to_string(piece->into.length) +
                                  " of its image in time (deadlines.io_ms); a stopped process goes on with SIGCONT");
    }

  private:
    const std::shared_ptr<Image> image_;
};

AskedImages::AskedImages(World world, Node& node, Nanos version_wait) : world_(world), node_(node), version_wait_(version_wait), gate_(world.clock) {}

Result<std::uint64_t> AskedImages::offer(ConnectionId from, ImageHeader header) {
    disconnected(from);
    if (header.image.bytes / header.block_bytes + header.cuts.size() > part_units_max)  // nothing stands behind it but a number, and tables are made of it
        return Status(Code::unsupported, "an image of " + format_bytes(header.image.bytes) + " in blocks of " + format_bytes(header.block_bytes) + " has more of them than a part may: give it larger ones (flush.block_bytes)");
    const auto image = std::make_shared<Image>(world_.clock, from, ++last_, header);
    LocalImage local;
    local.path = "memory " + std::to_string(image->number) + " of rank " + std::to_string(header.rank);
    local.data = {nullptr, 0, header.image.bytes};
    local.readable = Readable::asked;
    local.source = std::make_shared<Source>(image);
    local.header = std::move(header);
    TRY(node_.add_image(std::move(local)));
    images_.emplace(image->number, image);
    gate_.spawn(watch(image));
    return image->number;
}

std::shared_ptr<AskedImages::Image> AskedImages::find(ConnectionId from, std::uint64_t number) const {
    const auto found = images_.find(number);
    return found != images_.end() && found->second->from == from ? found->second : nullptr;
}

void AskedImages::given(Image& image, std::uint64_t number) {
    const auto found = image.pieces.find(number);
    if (found == image.pieces.end() || !found->second->is_told) return;
    const std::shared_ptr<Piece> piece = found->second;
    image.pieces.erase(found);
    piece->is_given = true;
    piece->ended.notify_all();
}

std::optional<control::Wanted> AskedImages::next_wanted(Image& image) {
    for (const auto& [number, piece] : image.pieces) {
        if (std::exchange(piece->is_told, true)) continue;
        const auto* window = dynamic_cast<const SharedMemory*>(piece->into.buffer.get());
        CAIRN_CHECK(window && piece->into.offset == 0);  // memory of allocate()
        control::Wanted wanted;
        wanted.piece = number;
        wanted.offset = piece->offset;
        wanted.length = piece->into.length;
        wanted.window = window->number();
        wanted.window_bytes = window->size();
        if (image.windows.insert(window->number()).second) wanted.descriptor = window->descriptor();
        return wanted;
    }
    return std::nullopt;
}

void AskedImages::disconnected(ConnectionId from) {
    std::vector<std::shared_ptr<Image>> gone;
    for (const auto& [number, image] : images_)
        if (image->from == from) gone.push_back(image);
    for (const std::shared_ptr<Image>& image : gone) {
        images_.erase(image->number);
        image->is_gone = true;
        let_go(*image);
        image->news.notify_all();
    }
}

// Nobody waits for its pieces any more. A window that its rank was told of may still be written to, so it is never used again.
void AskedImages::let_go(Image& image) {
    for (const auto& [number, piece] : std::exchange(image.pieces, {})) {
        if (auto* window = dynamic_cast<SharedMemory*>(piece->into.buffer.get()); window && piece->is_told) window->give_up();
        piece->ended.notify_all();
    }
}

// Until its version has ended; then the image leaves the node.
Task<void> AskedImages::watch(std::shared_ptr<Image> image) {
    std::optional<Nanos> gone_since;
    while (node_.knows(image->key.incarnation) && !node_.state(image->key).final) {
        const Nanos now = world_.clock.now();
        if (image->is_gone && !gone_since) gone_since = now;
        if (gone_since && now >= *gone_since + notice_wait) {
            const Status cancelled = co_await node_.cancel(image->key, world_.clock.in(one_cancel_wait));
            (void)cancelled;  // the state tells
            if (world_.clock.now() >= *gone_since + version_wait_)
                node_.give_up(image->key, Status(Code::cancelled, "rank " + std::to_string(image->rank) + " ended while it was to give its image, and the coordinator does not answer"));
        }
        image->news.notify_all();
        if (gone_since) co_await world_.clock.sleep(gone_look_again);
        else co_await node_.changed().wait(world_.clock.in(second));
    }
    let_go(*image);  // a process that stands still must not keep the windows of others
    image->news.notify_all();
    while (!node_.drop_image(image->key, image->rank).ok()) co_await world_.clock.sleep(gone_look_again);
}

}  // namespace cairn
