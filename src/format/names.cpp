// Names: each printer has one parser, and a parser accepts exactly what its printer prints.
#include "format/names.hpp"

#include <algorithm>
#include <charconv>

namespace cairn {

namespace {

bool name_character(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

// Length of the well-formed UTF-8 character at the start of `text` (RFC 3629: no surrogates, no overlong forms); 0 when
// there is none.
std::size_t utf8_character(std::string_view text) noexcept {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = at(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                               : (first & 0xF0) == 0xE0         ? 3
                               : first >= 0xF0 && first <= 0xF4 ? 4
                                                                : 0;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((at(i) & 0xC0) != 0x80) return 0;
    const unsigned char second = at(1);
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
    if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
    return length;
}

template <class Number>
std::optional<Number> parse_number(std::string_view digits) noexcept {
    Number number{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return number;
}

std::string padded(std::uint64_t number, std::size_t digits) {
    std::string text = std::to_string(number);
    return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

// Takes `prefix` off the front of `text`.
bool eat(std::string_view& text, std::string_view prefix) noexcept {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

constexpr std::string_view safetensors_suffix = ".safetensors", part_index_suffix = ".index", manifest_prefix = "manifest.", temporary_prefix = ".tmp-";
constexpr std::string_view open_suffix = ".open", from_suffix = ".from", aside_infix = ".damaged-";

std::optional<std::uint64_t> parse_epoch(std::string_view file, std::string_view suffix) {
    if (!file.ends_with(suffix)) return std::nullopt;
    file.remove_suffix(suffix.size());
    const auto epoch = parse_number<std::uint64_t>(file);
    if (!epoch || *epoch == 0 || *epoch > epoch_max || file != padded(*epoch, 10)) return std::nullopt;
    return epoch;
}

}  // namespace

bool valid_name(std::string_view name) noexcept {
    if (name.empty() || name.size() > name_bytes_max || name.front() == '.') return false;
    for (char c : name)
        if (!name_character(c)) return false;
    return true;
}

Status check_name(std::string_view name) {
    if (valid_name(name)) return {};
    const std::string allowed = "; allowed are 1 to 128 of A-Z a-z 0-9 . _ -, not starting with '.'";
    if (name.empty()) return invalid_argument("a name is empty" + allowed);
    if (name.size() > name_bytes_max)
        return invalid_argument("a name has " + std::to_string(name.size()) + " bytes" + allowed);
    if (!printable(name, name_bytes_max))
        return invalid_argument("a name has a control character or is not UTF-8" + allowed);
    return invalid_argument("name '" + std::string(name) + "' can not be used" + allowed);
}

bool printable(std::string_view text, std::size_t length_max) noexcept {
    if (text.size() > length_max) return false;
    while (!text.empty()) {
        const auto first = static_cast<unsigned char>(text.front());
        const std::size_t length = utf8_character(text);
        if (length == 0 || first < 0x20 || first == 0x7F) return false;
        if (first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0) return false;  // C1 control characters
        text.remove_prefix(length);
    }
    return true;
}

bool valid_region_name(std::string_view name) noexcept {
    if (name.empty() || !printable(name, region_name_bytes_max)) return false;
    for (;;) {
        const std::size_t slash = name.find('/');
        const std::string_view component = name.substr(0, slash);
        if (component.empty() || component == "." || component == "..") return false;
        if (slash == std::string_view::npos) return true;
        name.remove_prefix(slash + 1);
    }
}

Status check_region_name(std::string_view name) {
    if (valid_region_name(name)) return {};
    const std::string allowed =
        "; allowed are 1 to 512 bytes of UTF-8 without control characters, and no part between slashes that is empty, "
        "'.' or '..'";
    if (name.empty()) return invalid_argument("a region's name is empty" + allowed);
    if (name.size() > region_name_bytes_max)
        return invalid_argument("a region's name has " + std::to_string(name.size()) + " bytes" + allowed);
    if (!printable(name, region_name_bytes_max))
        return invalid_argument("a region's name has a control character or is not UTF-8" + allowed);
    return invalid_argument("region name '" + std::string(name) + "' can not be used" + allowed);
}

std::string part_file_name(const PartFileName& name) {
    std::string text(layout_words[static_cast<std::size_t>(name.layout)]);
    text += "-" + padded(name.part, 4) + "-of-" + padded(name.parts, 4) + "." + name.attempt_id.hex();
    if (name.replacement != 0) text += "." + std::to_string(name.replacement);
    return name.layout == FileLayout::tensors ? text.append(safetensors_suffix) : text;
}
std::string part_file_name(std::uint32_t part, std::uint32_t parts, Id128 attempt_id) { return part_file_name({part, parts, attempt_id}); }

namespace {

std::optional<FileLayout> eat_layout(std::string_view& file) {
    for (std::size_t i = 0; i < std::size(layout_words); ++i)
        if (file.starts_with(layout_words[i]) && file.substr(layout_words[i].size()).starts_with('-')) {
            file.remove_prefix(layout_words[i].size() + 1);
            return static_cast<FileLayout>(i);
        }
    return std::nullopt;
}

}  // namespace

std::optional<PartFileName> parse_part_file_name(std::string_view file) {
    const std::string_view whole = file;
    const auto layout = eat_layout(file);
    if (layout == FileLayout::tensors && file.ends_with(safetensors_suffix)) file.remove_suffix(safetensors_suffix.size());
    const std::size_t of = file.find("-of-"), dot = file.find('.');
    if (!layout || of == std::string_view::npos || dot == std::string_view::npos || dot < of + 4) return std::nullopt;
    const auto part = parse_number<std::uint32_t>(file.substr(0, of));
    const auto parts = parse_number<std::uint32_t>(file.substr(of + 4, dot - of - 4));
    file.remove_prefix(dot + 1);
    const std::size_t second_dot = file.find('.');
    const auto replacement = second_dot == std::string_view::npos ? std::optional<std::uint32_t>(0) : parse_number<std::uint32_t>(file.substr(second_dot + 1));
    PartFileName name;
    if (!part || !parts || *part >= *parts || !replacement || !Id128::parse(file.substr(0, second_dot), name.attempt_id)) return std::nullopt;
    name = {*part, *parts, name.attempt_id, *layout, *replacement};
    if (whole != part_file_name(name)) return std::nullopt;
    return name;
}

std::string part_index_file_name(std::string_view part_file) { return std::string(part_file).append(part_index_suffix); }

std::optional<PartFileName> parse_part_index_file_name(std::string_view file) {
    if (!file.ends_with(part_index_suffix)) return std::nullopt;
    return parse_part_file_name(file.substr(0, file.size() - part_index_suffix.size()));
}

bool is_part_path(std::string_view path) {
    const std::string_view file = path.substr(path.rfind('/') + 1);
    const bool has_word = std::any_of(std::begin(layout_words), std::end(layout_words), [&](std::string_view word) { return file.starts_with(word); });
    return has_word && file.find("-of-") != std::string_view::npos;
}

bool is_part_file(std::string_view file) { return parse_part_file_name(file) || parse_part_index_file_name(file); }

std::string manifest_file_name(Id128 incarnation) { return std::string(manifest_prefix) + incarnation.hex(); }

std::optional<Id128> parse_manifest_file_name(std::string_view file) {
    const std::string_view whole = file;
    Id128 incarnation;
    if (!eat(file, manifest_prefix) || !Id128::parse(file, incarnation)) return std::nullopt;
    if (whole != manifest_file_name(incarnation)) return std::nullopt;
    return incarnation;
}

std::string version_directory_name(Version version) { return std::to_string(version); }

std::optional<Version> parse_version_directory_name(std::string_view directory) {
    const auto version = parse_number<Version>(directory);
    if (!version || *version == 0 || directory != version_directory_name(*version)) return std::nullopt;
    return version;
}

std::string lineage_open_name(std::uint64_t epoch) { return padded(epoch, 10).append(open_suffix); }
std::string lineage_from_name(std::uint64_t epoch) { return padded(epoch, 10).append(from_suffix); }
std::optional<std::uint64_t> parse_lineage_open_name(std::string_view file) { return parse_epoch(file, open_suffix); }
std::optional<std::uint64_t> parse_lineage_from_name(std::string_view file) { return parse_epoch(file, from_suffix); }

std::string aside_name(std::string_view name, Id128 unique) { return std::string(name).append(aside_infix) + unique.hex(); }

bool is_aside_name(std::string_view name) {
    const std::size_t at = name.rfind(aside_infix);
    Id128 unique;
    return at != std::string_view::npos && Id128::parse(name.substr(at + aside_infix.size()), unique);
}

std::optional<std::uint64_t> parse_epoch_taken(std::string_view file) {
    if (is_aside_name(file)) file = file.substr(0, file.rfind(aside_infix));
    const auto open = parse_lineage_open_name(file);
    return open ? open : parse_lineage_from_name(file);
}

std::string temporary_file_name(Id128 unique) { return std::string(temporary_prefix) + unique.hex(); }

std::optional<Id128> parse_temporary_file_name(std::string_view file) {
    const std::string_view whole = file;
    Id128 unique;
    if (!eat(file, temporary_prefix) || !Id128::parse(file, unique)) return std::nullopt;
    if (whole != temporary_file_name(unique)) return std::nullopt;
    return unique;
}

std::string slot_file_name(SlotKind kind, std::uint64_t number) { return std::string(row_of(kind).word) + "-" + std::to_string(number); }

std::optional<SlotFileName> parse_slot_file_name(std::string_view file) {
    for (const SlotKindRow& row : slot_kinds) {
        std::string_view rest = file;
        if (!eat(rest, row.word) || !eat(rest, "-")) continue;
        const auto number = parse_number<std::uint64_t>(rest);
        if (number && file == slot_file_name(row.kind, *number)) return SlotFileName{row.kind, *number};
    }
    return std::nullopt;
}

std::optional<Id128> parse_attempt_of(std::string_view file) {
    if (const auto part = parse_part_file_name(file)) return part->attempt_id;
    if (const auto part = parse_part_index_file_name(file)) return part->attempt_id;
    return parse_temporary_file_name(file);
}

}  // namespace cairn
