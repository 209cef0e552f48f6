// Fuzz target: every parser of names accepts what its printer prints, and nothing else.
#include "format/fuzz.hpp"
#include "format/names.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    const ByteView bytes = std::as_bytes(std::span(data, size));
    const std::string_view text = as_text(bytes);
    if (const auto part = parse_part_file_name(text))
        fuzz::expect(part_file_name(part->part, part->parts, part->attempt_id) == text, "part");
    if (const auto id = parse_manifest_file_name(text)) fuzz::expect(manifest_file_name(*id) == text, "manifest");
    if (const auto version = parse_version_directory_name(text))
        fuzz::expect(version_directory_name(*version) == text, "version");
    if (const auto id = parse_temporary_file_name(text)) fuzz::expect(temporary_file_name(*id) == text, "temporary");
    if (const auto epoch = parse_lineage_open_name(text)) fuzz::expect(lineage_open_name(*epoch) == text, "open");
    if (const auto epoch = parse_lineage_from_name(text)) fuzz::expect(lineage_from_name(*epoch) == text, "from");
    if (const auto slot = parse_slot_file_name(text)) fuzz::expect(slot_file_name(slot->kind, slot->number) == text, "slot");
    fuzz::expect(check_name(text).ok() == valid_name(text), "name");
    fuzz::expect(check_region_name(text).ok() == valid_region_name(text), "region name");
    if (valid_name(text)) fuzz::expect(valid_region_name(text), "a name that is no path component");
    return 0;
}
