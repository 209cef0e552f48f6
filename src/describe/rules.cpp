#include "describe/rules.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "describe/file.hpp"

namespace cairn {

namespace {

constexpr std::size_t rule_axes_max = 32, rule_text_bytes_max = 255;
constexpr std::string_view types_allowed = "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 bfloat16, with < (little endian) or > (big endian) before all that have more than a byte: \"<f8\"";

struct TypeName {
    std::string_view name;
    DataType type;
};
constexpr TypeName type_names[] = {
    {"i1", DataType::i8},  {"i2", DataType::i16}, {"i4", DataType::i32}, {"i8", DataType::i64}, {"u1", DataType::u8},  {"u2", DataType::u16}, {"u4", DataType::u32},
    {"u8", DataType::u64}, {"f2", DataType::f16}, {"f4", DataType::f32}, {"f8", DataType::f64}, {"c8", DataType::c64}, {"c16", DataType::c128}, {"bfloat16", DataType::bf16},
};

// One rule, key by key; each says what is wrong with its value, and what is allowed.
class RuleReader {
  public:
    explicit RuleReader(const toml::table& table) : table_(table) {}
    Result<FileRule> read() {
        TRY(keys());
        TRY(text("files", rule_.files));
        if (rule_.files.empty()) return invalid_argument("it lacks files; allowed: a pattern of names, as \"*.dat\"");
        TRY(type());
        TRY(offset());
        TRY(shape());
        TRY(text("name", rule_.name));
        return std::move(rule_);
    }

  private:
    Status keys() const;
    Status text(std::string_view key, std::string& into) const;
    Status type();
    Status offset();
    Status shape();

    const toml::table& table_;
    FileRule rule_;
};

Status RuleReader::keys() const {
    for (const auto& [key, value] : table_) {
        const std::initializer_list<std::string_view> known = {"files", "offset", "type", "shape", "name"};
        if (std::find(known.begin(), known.end(), key.str()) == known.end())
            return invalid_argument("unknown key " + std::string(key.str().substr(0, 80)) + "; allowed: files, offset, type, shape, name");
    }
    return {};
}

Status RuleReader::text(std::string_view key, std::string& into) const {
    const toml::node* const node = table_.get(key);
    if (!node) return {};
    const auto* const given = node->as_string();
    if (!given || given->get().size() > rule_text_bytes_max)
        return invalid_argument(std::string(key) + " is no text of at most " + std::to_string(rule_text_bytes_max) + " bytes");
    into = given->get();
    return {};
}

Status RuleReader::type() {
    std::string given;
    TRY(text("type", given));
    const bool has_order = given.starts_with('<') || given.starts_with('>');
    const std::string name = given.substr(has_order || given.starts_with('|') ? 1 : 0);  // NumPy writes "|u1" where there is no order
    for (const TypeName& known : type_names) {
        if (known.name != name) continue;
        if (!has_order && type_bytes(known.type) > 1) return invalid_argument("type = \"" + given + "\" does not say the byte order: write \"<" + name + "\" (little endian) or \">" + name + "\"");
        rule_.type = known.type;
        rule_.is_big_endian = given.starts_with('>') && type_bytes(known.type) > 1;
        return {};
    }
    return invalid_argument((given.empty() ? "it lacks type" : "type = \"" + given + "\" is none") + "; allowed: " + std::string(types_allowed));
}

Status RuleReader::offset() {
    const toml::node* const node = table_.get("offset");
    if (!node) return {};
    const auto* const given = node->as_integer();
    if (!given || given->get() < 0) return invalid_argument("offset is no whole number of bytes, 0 or more");
    rule_.offset = static_cast<std::uint64_t>(given->get());
    return {};
}

Status RuleReader::shape() {
    const toml::node* const node = table_.get("shape");
    if (!node) return {};
    const Status bad = invalid_argument("shape is no list of 1 to " + std::to_string(rule_axes_max) + " lengths; allowed: whole numbers from 1 on, the axis that changes slowest first, and at most once -1: as many as there are");
    const auto* const given = node->as_array();
    if (!given || given->empty() || given->size() > rule_axes_max) return bad;
    std::vector<std::uint64_t> known;
    rule_.shape.clear();
    for (const toml::node& each : *given) {
        const auto* const length = each.as_integer();
        if (!length || length->get() < -1 || length->get() == 0) return bad;
        rule_.shape.push_back(length->get());
        if (length->get() > 0) known.push_back(static_cast<std::uint64_t>(length->get()));
    }
    if (known.size() + 1 < rule_.shape.size()) return bad;
    const std::optional<std::uint64_t> bytes = bytes_of(rule_.type, known);
    if (!bytes || *bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return invalid_argument("shape makes more bytes than a file can have");
    return {};
}

static_assert(static_cast<std::uint64_t>(std::int64_t{-1}) == open_axis);

bool speaks_of(const FileRule& rule, const std::string& name) {
    const bool is_of_last = rule.files.find('/') == std::string::npos;
    const std::size_t last = is_of_last ? name.rfind('/') + 1 : 0;  // npos + 1: 0
    return ::fnmatch(rule.files.c_str(), name.c_str() + last, FNM_PATHNAME | FNM_PERIOD) == 0;
}

}  // namespace

Result<FileRules> parse_file_rules(std::string_view text, const std::string& path) {
    const toml::parse_result parsed = toml::parse(text, path);
    if (!parsed) return invalid_argument(path + ":" + std::to_string(parsed.error().source().begin.line) + ": " + std::string(parsed.error().description()));
    FileRules rules;
    for (const auto& [key, node] : parsed.table()) {
        const std::string where = path + ":" + std::to_string(node.source().begin.line) + ": ";
        const auto* const list = node.as_array();
        if (key.str() != "rule" || !list || !list->is_homogeneous(toml::node_type::table)) return invalid_argument(where + "no rule; allowed: [[rule]], once for each, with its keys below it");
        if (list->size() > file_rules_max) return invalid_argument(where + "more than " + std::to_string(file_rules_max) + " rules");
        for (const toml::node& each : *list) {
            Result<FileRule> rule = RuleReader(*each.as_table()).read();
            const std::string which = path + ":" + std::to_string(each.source().begin.line) + ": rule " + std::to_string(rules.size() + 1);
            if (!rule.ok()) return std::move(rule).status().within(which);
            rules.push_back(std::move(rule).value());
        }
    }
    return rules;
}

std::vector<Extent> describe_by_rules(const FileRules& rules, const std::string& name, std::uint64_t file_bytes) {
    std::vector<Extent> extents;
    for (const FileRule& rule : rules) {
        if (!speaks_of(rule, name)) continue;
        const DescribedArray array{rule.name, rule.type, rule.is_big_endian, {rule.shape.begin(), rule.shape.end()}, rule.offset};
        if (std::optional<Extent> extent = extent_of(array, file_bytes)) extents.push_back(std::move(*extent));
    }
    return sound(std::move(extents), file_bytes);
}

}  // namespace cairn
