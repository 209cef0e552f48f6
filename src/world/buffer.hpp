// Buffer and Slice: the bytes the engine moves but never looks at.
//
// In the real world a buffer is memory; in the simulated one it may be a description of content (seed, offset, length) with no
// memory behind it. Metadata (footers, manifests, messages) are real bytes in both.
//
// Ownership is the quarantine of rule 6: whoever may still touch a buffer (the kernel, the network) holds a BufferPtr. An
// operation that outlived its deadline keeps its reference, so the buffer can not be used again, nor leave the memory bound,
// before the operation is really over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn {

class Buffer {
  public:
    virtual ~Buffer() = default;
    virtual std::byte* data() noexcept = 0;  // null: content is described, not stored
    virtual std::uint64_t size() const noexcept = 0;
    virtual bool is_mapped() const noexcept { return false; }  // a file: whoever touches it may wait for a disk
    // Of a mapped file: some of it was touched and is not to be had any more; zeros stand for it from then on. Asked after the bytes were used.
    virtual bool has_lost_bytes() const noexcept { return false; }
};
using BufferPtr = std::shared_ptr<Buffer>;

class BytesBuffer final : public Buffer {
  public:
    explicit BytesBuffer(Bytes bytes) : bytes_(std::move(bytes)) {}
    std::byte* data() noexcept override { return bytes_.data(); }
    std::uint64_t size() const noexcept override { return bytes_.size(); }
    const Bytes& bytes() const noexcept { return bytes_; }
    Bytes take() { return std::move(bytes_); }

  private:
    Bytes bytes_;
};

// Somebody else's, who keeps it for as long as this lives.
class BorrowedMemory final : public Buffer {
  public:
    BorrowedMemory(std::byte* data, std::uint64_t size) noexcept : data_(data), size_(size) {}
    std::byte* data() noexcept override { return data_; }
    std::uint64_t size() const noexcept override { return size_; }

  private:
    std::byte* const data_;
    const std::uint64_t size_;
};

struct Slice {
    BufferPtr buffer;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;

    static Slice of(Bytes bytes) {
        const std::uint64_t length = bytes.size();
        return {std::make_shared<BytesBuffer>(std::move(bytes)), 0, length};
    }
    static Slice whole(BufferPtr buffer) {
        const std::uint64_t length = buffer->size();
        return {std::move(buffer), 0, length};
    }
    Slice part(std::uint64_t from, std::uint64_t count) const {
        CAIRN_CHECK(from + count <= length);
        return {buffer, offset + from, count};
    }
    // Only where data() is not null.
    std::byte* data() const noexcept { return buffer->data() + offset; }
    ByteView bytes() const noexcept { return {buffer->data() + offset, static_cast<std::size_t>(length)}; }
};

}  // namespace cairn
