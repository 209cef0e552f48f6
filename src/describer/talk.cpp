#include "describer/talk.hpp"

#include <cstring>

#include "describe/file.hpp"

namespace cairn::describer {

namespace {

constexpr std::uint32_t request_magic = 0x71736443, answer_magic = 0x61736443;
constexpr std::size_t axes_max = 255, name_bytes_max = 255, text_bytes_max = 1000;

class Writer {
  public:
    template <class T>
    void put(T value) {
        static_assert(std::is_integral_v<T>);
        const auto* from = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), from, from + sizeof value);
    }
    void put_text(std::string_view text) {
        const ByteView view = as_bytes(text);
        bytes_.insert(bytes_.end(), view.begin(), view.end());
    }
    std::size_t size() const { return bytes_.size(); }
    Bytes with_head(std::uint32_t magic, Code code) {
        Writer all;
        all.put(magic);
        all.put(static_cast<std::uint32_t>(code));
        all.put(static_cast<std::uint64_t>(bytes_.size()));
        all.bytes_.insert(all.bytes_.end(), bytes_.begin(), bytes_.end());
        return std::move(all.bytes_);
    }

  private:
    Bytes bytes_;
};

// After what is not there all is zero, and ok() false.
class Reader {
  public:
    explicit Reader(ByteView bytes) : rest_(bytes) {}
    template <class T>
    T get() {
        static_assert(std::is_integral_v<T>);
        T value{};
        if (const ByteView from = take(sizeof value); from.size() == sizeof value) std::memcpy(&value, from.data(), sizeof value);
        return value;
    }
    std::string text(std::size_t bytes) { return std::string(as_text(take(bytes))); }
    bool ok() const { return ok_; }
    bool is_at_end() const { return rest_.empty(); }

  private:
    ByteView take(std::size_t bytes) {
        if (bytes > rest_.size()) ok_ = false;
        if (!ok_) return {};
        const ByteView taken = rest_.first(bytes);
        rest_ = rest_.subspan(bytes);
        return taken;
    }
    ByteView rest_;
    bool ok_ = true;
};

Result<Head> head(ByteView bytes, std::uint32_t magic, std::uint64_t bytes_max) {
    Reader reader(bytes);
    const bool is_ours = reader.get<std::uint32_t>() == magic;
    Head read{reader.get<std::uint32_t>(), reader.get<std::uint64_t>()};
    if (!reader.ok() || !is_ours || read.code > static_cast<std::uint32_t>(Code::internal)) return corrupt("what was said makes no sense");
    if (read.bytes > bytes_max) return corrupt("what was said is too long");
    return read;
}

}  // namespace

Bytes request_bytes(const Request& request) {
    Writer writer;
    writer.put(request.offset);
    writer.put(request.length);
    writer.put(request.limit_ms);
    writer.put_text(request.path);
    return writer.with_head(request_magic, Code::ok);
}

Bytes answer_bytes(const Result<std::vector<Extent>>& answer) {
    Writer writer;
    if (!answer.ok()) {
        const Status status = answer.status();
        writer.put_text(std::string_view(status.text()).substr(0, text_bytes_max));
        return writer.with_head(answer_magic, status.code());
    }
    for (const Extent& extent : answer.value()) {
        const std::string_view name = std::string_view(extent.name).substr(0, name_bytes_max);
        if (extent.shape.size() > axes_max) continue;
        if (writer.size() + 33 + extent.shape.size() * 8 + name.size() > answer_bytes_max) break;
        writer.put(static_cast<std::uint8_t>(extent.type));
        writer.put(static_cast<std::uint8_t>(extent.is_big_endian));
        writer.put(static_cast<std::uint8_t>(extent.axes));
        writer.put(static_cast<std::uint8_t>(extent.shape.size()));
        writer.put(static_cast<std::uint8_t>(name.size()));
        writer.put(extent.offset);
        writer.put(extent.length);
        for (const std::uint64_t length : extent.shape) writer.put(length);
        writer.put_text(name);
    }
    return writer.with_head(answer_magic, Code::ok);
}

Result<Head> request_head(ByteView bytes) { return head(bytes, request_magic, request_bytes_max); }
Result<Head> answer_head(ByteView bytes) { return head(bytes, answer_magic, answer_bytes_max); }

Result<Request> read_request(ByteView body) {
    Reader reader(body);
    Request request;
    request.offset = reader.get<std::uint64_t>();
    request.length = reader.get<std::uint64_t>();
    request.limit_ms = reader.get<std::uint64_t>();
    if (!reader.ok()) return corrupt("a request that is too short");
    request.path = reader.text(body.size() - 24);
    return request;
}

Result<std::vector<Extent>> read_extents(ByteView body) {
    std::vector<Extent> extents;
    Reader reader(body);
    while (!reader.is_at_end()) {
        const auto type = reader.get<std::uint8_t>(), is_big_endian = reader.get<std::uint8_t>(), order = reader.get<std::uint8_t>(), axes = reader.get<std::uint8_t>(), name_bytes = reader.get<std::uint8_t>();
        Extent extent;
        extent.type = static_cast<DataType>(type);
        extent.is_big_endian = is_big_endian == 1;
        extent.axes = static_cast<ExtentAxes>(order);
        extent.offset = reader.get<std::uint64_t>();
        extent.length = reader.get<std::uint64_t>();
        for (unsigned i = 0; i < axes && reader.ok(); ++i) extent.shape.push_back(reader.get<std::uint64_t>());
        extent.name = reader.text(name_bytes);
        if (!reader.ok() || type > static_cast<std::uint8_t>(data_type_last) || is_big_endian > 1 || order > static_cast<std::uint8_t>(extent_axes_last)) return corrupt("an extent that makes no sense");
        if (bytes_of(extent.type, extent.shape) != extent.length) return corrupt("an extent whose shape and length differ");
        if (extents.size() == extents_max) return corrupt("more extents than there may be");
        extents.push_back(std::move(extent));
    }
    return extents;
}

}  // namespace cairn::describer
