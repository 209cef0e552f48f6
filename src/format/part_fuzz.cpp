// Fuzz target: parts, read from the end as a reader does; and footers alone, under a checksum that is right.
#include "base/checksum.hpp"
#include "format/fuzz.hpp"
#include "format/part.hpp"

namespace {

using namespace cairn;

Result<Footer> read_part(ByteView part) {
    FooterPlace place;
    TRY_ASSIGN(place, decode_trailer(part, part.size()));
    return decode_footer(part.subspan(place.offset, place.length), place);
}

void expect_comes_back(const Result<Footer>& footer) {
    if (!footer.ok())
        return fuzz::expect(footer.code() == Code::corrupt || footer.code() == Code::unsupported,
                            "refused with a wrong code");
    const Bytes tail = encode_footer(*footer);
    const auto place = decode_trailer(tail, footer->data_bytes + tail.size());
    fuzz::expect(place.ok(), "our own trailer is refused");
    const auto again = decode_footer(ByteView(tail).first(place->length), *place);
    fuzz::expect(again.ok(), "what was read can not be read again");
    fuzz::expect(*again == *footer, "what was read comes back otherwise");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const ByteView bytes = std::as_bytes(std::span(data, size));
    expect_comes_back(read_part(bytes));
    if (size < part_trailer_bytes) return 0;
    // The tail of a part whose data is not there: the footer lies where the trailer says, and its checksum is right.
    const ByteView footer = bytes.first(size - part_trailer_bytes);
    expect_comes_back(decode_footer(footer, {get_u64(&bytes[footer.size()]), footer.size(), checksum(footer)}));
    return 0;
}
