// ChecksummedRead: a run of a file, read a little at a time into memory of the thread's own that stays in its cache, and from there checksummed and copied in one pass. So each byte comes out of
// main memory and goes there as often as with a plain read. Private to this room.
//
// Not read straight to where the bytes go: a read that hangs would write there whenever it comes back, when the application has long gone on with something else. Not mapped: to map pages costs
// more than to copy them (a fault for every 16), and a page that can not be read is a signal.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "world/real/operation.hpp"
#include "world/storage.hpp"

namespace cairn {

class ChecksummedRead final : public Operation {
  public:
    ChecksummedRead(Clock& clock, std::shared_ptr<RealFile> file, std::uint64_t offset, std::uint64_t length, const Units& units, std::vector<Destination> into)
        : Operation(clock), file_(std::move(file)), offset_(offset), length_(length), ends_(unit_ends(units, length)), into_(std::move(into)) {}
    void run() override;

    std::uint64_t read_bytes() const noexcept { return at_; }
    // When it is done. `what` was read, for people.
    Result<std::vector<std::uint64_t>> take(const std::string& what);

    // Who waits for it has one: when that ends, nothing of the destinations is touched any more, and they are let go of.
    class Closing {
      public:
        explicit Closing(ChecksummedRead& of) : of_(of) {}
        Closing(const Closing&) = delete;
        ~Closing() { of_.close(); }

      private:
        ChecksummedRead& of_;
    };

  private:
    void close();
    bool pass(ByteView bytes);
    ByteView before_destination(ByteView bytes, std::byte*& to);

    const std::shared_ptr<RealFile> file_;
    const std::uint64_t offset_, length_;
    const std::vector<std::uint64_t> ends_;
    std::uint64_t at_ = 0;  // so many bytes have passed
    std::size_t unit_ = 0;  // the one they are in
    RunningChecksum sum_;
    std::vector<std::uint64_t> sums_;
    int error_ = 0;

    std::mutex mutex_;  // held while bytes pass: some tens of microseconds
    bool is_closed_ = false;
    std::vector<Destination> into_;
    std::size_t destination_ = 0;  // the first that does not end before at_
};

}  // namespace cairn
