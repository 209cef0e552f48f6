// Doubts: images of scratch that a restart of the machine may have torn, until they are proved whole or are gone.
//
// They are believed only where their checksums prove them whole. At the start only the proof itself is looked at; data are read when others are
// answered already (verify). Until then nothing is flushed, and who restores compares with the checksums. What is still in doubt is noted before
// anybody is answered: an image that is sealed from now on has no proof yet, and needs none.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "copies/scratch.hpp"
#include "daemon/boot.hpp"
#include "daemon/slots.hpp"

namespace cairn {

class Doubts {
  public:
    Doubts(World world, WorkerPool& workers, Slots& slots, ScratchLayout scratch, Nanos io_wait);

    // Takes out of the scan, and out of scratch, what may be torn and has no proof. cancelled when it is over.
    Task<Status> drop_unproved(ScratchScan& scan, std::function<bool()> over);
    // Adopted: true when it is in doubt, and kept for verify.
    bool take(const LocalImage& image, bool committed);
    // Somebody is still in doubt, or it is not noted yet that nobody is.
    bool verifying() const { return verifying_; }

    // Looks once at the data of each that was taken. `settled` hears of each that is not in doubt any more: whole and not committed, so to be flushed; or
    // to be forgotten, since it is committed, or gone.
    using Settled = std::function<Task<void>(LocalImage image, bool to_be_flushed)>;
    Task<void> verify(Settled settled, std::function<bool()> over);

  private:
    struct Unverified {
        LocalImage image;
        bool committed = false;
        int io_errors = 0;
    };
    Task<std::shared_ptr<Boot>> look_at_boot(std::function<bool()> over);
    Task<bool> drop_torn(LocalImage image, Status why);
    Task<void> verify_one(Unverified one, const Settled& settled);
    Task<void> note();

    World world_;
    WorkerPool& workers_;
    Slots& slots_;
    ScratchLayout scratch_;
    Nanos io_wait_;
    Boot boot_;
    std::vector<Unverified> unverified_;
    bool verifying_ = false;
};

}  // namespace cairn
