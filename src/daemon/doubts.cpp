#include "daemon/doubts.hpp"

#include <utility>

#include "base/log.hpp"
#include "daemon/blocking.hpp"
#include "daemon/slot_files.hpp"

namespace cairn {

namespace {

constexpr int io_errors_max = 5;  // of one image

}  // namespace

Doubts::Doubts(World world, WorkerPool& workers, Slots& slots, ScratchLayout scratch, Nanos io_wait)
    : world_(world), workers_(workers), slots_(slots), scratch_(std::move(scratch)), io_wait_(io_wait) {}

// Each look into an object of its own: one that is given up may still write into it.
Task<std::shared_ptr<Boot>> Doubts::look_at_boot(std::function<bool()> over) {
    while (!over()) {
        const auto boot = std::make_shared<Boot>();
        std::function<Status()> look = [boot, layout = scratch_] {
            for (const std::string& directory : {layout.root, layout.jobs()}) remove_temporaries(directory);
            remove_left(layout.shared(), std::chrono::minutes(1));
            *boot = Boot::look(layout);
            return Status();
        };
        const Status looked = co_await call_blocking(workers_, world_.clock, std::move(look), world_.clock.in(io_wait_));
        if (looked.ok()) co_return boot;
        log_warning("boot-not-known", {{"why", looked}});  // whatever the reason, it says nothing of the images
        co_await world_.clock.sleep(try_again);
    }
    co_return nullptr;
}

// True: it is gone.
Task<bool> Doubts::drop_torn(LocalImage image, Status why) {
    const ImageHeader& header = image.header;
    log_warning("image-not-believed", {{"name", header.key.name}, {"version", header.key.version}, {"rank", header.rank},
                                       {"path", image.path}, {"because", boot_.why}, {"why", why}});
    slots_.discard(image.path);  // before anything is waited for: the slot is handed out to nobody
    std::function<Status()> work = [path = image.path] { return remove_slot_file(path); };
    const Status removed = co_await call_blocking(workers_, world_.clock, std::move(work), world_.clock.in(io_wait_));
    if (!removed.ok()) log_warning("image-stays", {{"path", image.path}, {"why", removed}});
    co_return removed.ok();
}

Task<Status> Doubts::drop_unproved(ScratchScan& scan, std::function<bool()> over) {
    const std::shared_ptr<Boot> looked = co_await look_at_boot(std::move(over));
    if (!looked) co_return Status(Code::cancelled, "the daemon ends");
    boot_ = *looked;
    boot_.doubtful.clear();
    for (const Unread& each : scan.unread)
        if (looked->doubts_file(each.path)) boot_.doubtful.insert(doubt_of_file(each.path));
    std::vector<LocalImage> proved;
    for (LocalImage& image : std::exchange(scan.images, {})) {
        const std::string doubt = doubt_of(image);
        LocalImage one = std::move(image);
        if (!looked->doubts(one)) {
            proved.push_back(std::move(one));
            continue;
        }
        boot_.doubtful.insert(doubt);
        const Status status = check_proof(one);
        if (status.ok()) {
            verifying_ = true;
            proved.push_back(std::move(one));
            continue;
        }
        const bool gone = co_await drop_torn(std::move(one), status);
        if (gone) boot_.doubtful.erase(doubt);
    }
    scan.images = std::move(proved);
    if (!boot_.noted || boot_.doubtful != looked->doubtful) co_await note();
    co_return Status();
}

bool Doubts::take(const LocalImage& image, bool committed) {
    if (!boot_.doubtful.count(doubt_of(image))) return false;
    unverified_.push_back({image, committed});
    return true;
}

Task<void> Doubts::verify(Settled settled, std::function<bool()> over) {
    for (Unverified& each : std::exchange(unverified_, {})) {
        if (over()) co_return;
        Unverified one = std::move(each);
        co_await verify_one(std::move(one), settled);
    }
    if (!verifying_ || !unverified_.empty()) co_return;
    co_await note();
    verifying_ = false;
}

Task<void> Doubts::verify_one(Unverified one, const Settled& settled) {
    const std::string doubt = doubt_of(one.image);
    const Status status = co_await check_data(world_, one.image, io_wait_);
    const ImageHeader& header = one.image.header;
    if (!slots_.holds(header.key, header.rank, one.image.path) || status.ok()) {  // dropped meanwhile, or whole
        boot_.doubtful.erase(doubt);
        const bool to_be_flushed = status.ok() && !one.committed;
        co_await settled(std::move(one.image), to_be_flushed);
        co_return;
    }
    const bool lost = status.code() == Code::io_error && ++one.io_errors >= io_errors_max;  // a sector that the disk has lost
    if (may_pass(status) && !lost) {
        log_warning("image-can-not-be-checked", {{"path", one.image.path}, {"why", status}});
        unverified_.push_back(std::move(one));
        co_return;
    }
    LocalImage torn = one.image;
    const bool gone = co_await drop_torn(std::move(torn), status);
    if (gone) boot_.doubtful.erase(doubt);
    co_await settled(std::move(one.image), false);
}

Task<void> Doubts::note() {
    if (boot_.id.empty()) co_return;
    std::function<Status()> work = [boot = boot_, layout = scratch_] { return boot.note(layout); };
    const Status noted = co_await call_blocking(workers_, world_.clock, std::move(work), world_.clock.in(io_wait_));
    if (!noted.ok()) log_warning("boot-not-noted", {{"why", noted}});
}

}  // namespace cairn
