#include "describe/pickle.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "describe/cursor.hpp"
#include "describe/file.hpp"

namespace cairn {

namespace {

// Of things remembered at once. What torch.save writes of 65,536 tensors stays below these; a value is 16 bytes.
constexpr std::size_t stack_max = 1 << 16, remembered_max = 1 << 20;
constexpr std::size_t axes_max = 32, key_bytes_max = 64, name_depth_max = 32, name_bytes_max = 256;

// What an opcode leaves on the stack, as far as it matters.
struct Value {
    enum Kind : std::uint8_t { nothing, integer, text, tuple, type, rebuild, storage, tensor, container };
    Kind kind = nothing;
    std::uint32_t count = 0;  // of a text: bytes; of a tuple: values
    std::uint64_t at = 0;     // integer: itself; text: where in the pickle; tuple: where in tuples_; else the number of what it is
};

// Functions of torch that make a tensor, by what their arguments are.
struct Rebuild {
    enum : std::uint8_t {
        of_storage,  // (storage, offset, size, stride, ...)
        typed,       // the same, and a type as the seventh
        of_tensor,   // (tensor, ...)
        of_call,     // (function, class, arguments, ...)
    };
};

struct TorchName {
    std::string_view name;
    Value::Kind kind;
    std::uint8_t what;
};
constexpr TorchName storage_of(std::string_view name, DataType type) { return {name, Value::type, static_cast<std::uint8_t>(type)}; }
// Quantised numbers are integers. Names of types stand in _rebuild_tensor_v3, and in what C++ writes of types that have no class of a storage.
constexpr std::array torch_names = {
    TorchName{"_rebuild_tensor", Value::rebuild, Rebuild::of_storage}, TorchName{"_rebuild_tensor_v2", Value::rebuild, Rebuild::of_storage}, TorchName{"_rebuild_qtensor", Value::rebuild, Rebuild::of_storage},
    TorchName{"_rebuild_tensor_v3", Value::rebuild, Rebuild::typed},
    TorchName{"_rebuild_parameter", Value::rebuild, Rebuild::of_tensor}, TorchName{"_rebuild_parameter_with_state", Value::rebuild, Rebuild::of_tensor},
    TorchName{"_rebuild_from_type", Value::rebuild, Rebuild::of_call}, TorchName{"_rebuild_from_type_v2", Value::rebuild, Rebuild::of_call},
    storage_of("DoubleStorage", DataType::f64), storage_of("FloatStorage", DataType::f32), storage_of("HalfStorage", DataType::f16), storage_of("BFloat16Storage", DataType::bf16),
    storage_of("LongStorage", DataType::i64), storage_of("IntStorage", DataType::i32), storage_of("ShortStorage", DataType::i16), storage_of("CharStorage", DataType::i8),
    storage_of("ByteStorage", DataType::u8), storage_of("BoolStorage", DataType::u8), storage_of("UInt16Storage", DataType::u16), storage_of("UInt32Storage", DataType::u32),
    storage_of("UInt64Storage", DataType::u64), storage_of("ComplexFloatStorage", DataType::c64), storage_of("ComplexDoubleStorage", DataType::c128),
    storage_of("QInt8Storage", DataType::i8), storage_of("QUInt8Storage", DataType::u8), storage_of("QInt32Storage", DataType::i32), storage_of("UntypedStorage", DataType::bytes),
    storage_of("float64", DataType::f64), storage_of("float32", DataType::f32), storage_of("float16", DataType::f16), storage_of("bfloat16", DataType::bf16),
    storage_of("int64", DataType::i64), storage_of("int32", DataType::i32), storage_of("int16", DataType::i16), storage_of("int8", DataType::i8), storage_of("uint8", DataType::u8),
    storage_of("bool", DataType::u8), storage_of("uint16", DataType::u16), storage_of("uint32", DataType::u32), storage_of("uint64", DataType::u64),
    storage_of("complex64", DataType::c64), storage_of("complex128", DataType::c128),
};

Value torch_value(std::string_view module, std::string_view name) {
    if (module != "torch" && !module.starts_with("torch.")) return {};
    if (name.starts_with("Float8_") || name.starts_with("float8_")) return {Value::type, 0, static_cast<std::uint64_t>(DataType::u8)};
    for (const TorchName& known : torch_names)
        if (known.name == name) return {known.kind, 0, known.what};
    if (name.ends_with("Storage")) return {Value::type, 0, static_cast<std::uint64_t>(DataType::bytes)};
    return {};
}

class PickleScan {
  public:
    explicit PickleScan(ByteView pickle) : pickle_(pickle), cursor_(pickle) {}
    Pickled run();

  private:
    // Under which key of which container a thing was put first.
    struct Place {
        std::size_t in = none;
        Value key;
    };
    struct Container {
        Place place;
        std::uint64_t listed = 0;  // how many values were appended
    };
    static constexpr std::size_t none = SIZE_MAX;

    // Each is false where the scan ends.
    bool step();
    bool literal(std::uint8_t opcode);
    bool memo(std::uint8_t opcode);
    bool change(std::uint8_t opcode);
    bool push(Value value);
    bool push_text(unsigned length_width);
    bool push_bytes(unsigned length_width);
    bool push_global();
    bool push_container();
    bool make_tuple(std::size_t from);
    bool put(std::uint64_t index);
    bool get(std::uint64_t index);
    bool persistent();
    bool called();
    bool fill(std::size_t from, bool is_dict);

    bool has(std::size_t count) const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()) >= count; }
    std::size_t from_top(std::size_t count) const { return has(count) ? stack_.size() - count : none; }
    std::size_t take_mark();
    bool cut(std::size_t from);
    Value pop();
    std::string_view text(const Value& value) const { return value.kind == Value::text ? as_text(pickle_.subspan(value.at, value.count)) : std::string_view(); }
    const Value& element(const Value& tuple, std::size_t i) const { return tuples_[tuple.at + i]; }
    Value rebuilt(const Value& function, const Value& arguments);
    bool lengths_of(const Value& tuple, std::vector<std::uint64_t>& lengths) const;
    void place(const Value& thing, std::size_t in, const Value& key);
    std::string path(Place place) const;

    ByteView pickle_;
    Cursor cursor_;
    std::vector<Value> stack_, memo_, tuples_;
    std::vector<std::size_t> marks_;
    std::vector<Container> containers_;
    std::vector<Place> places_;  // of the tensors
    std::map<std::string_view, std::size_t> by_key_;
    Pickled found_;
};

Pickled PickleScan::run() {
    while (step()) {
    }
    for (std::size_t i = 0; i < found_.tensors.size(); ++i) found_.tensors[i].name = path(places_[i]);
    return std::move(found_);
}

bool PickleScan::step() {
    const auto opcode = static_cast<std::uint8_t>(cursor_.little(1));
    if (!cursor_.ok()) return false;
    switch (opcode) {
        case 0x80: cursor_.skip(1); return cursor_.ok();  // PROTO
        case 0x95: cursor_.skip(8); return cursor_.ok();  // FRAME
        case '(': marks_.push_back(stack_.size()); return marks_.size() <= stack_max;
        case '0': return cut(from_top(1));
        case '1': return cut(take_mark());
        case '2': return has(1) && push(stack_.back());
        case 'c': return push_global();
        case 'q': case 'r': case 0x94: case 'h': case 'j': return memo(opcode);
        case 't': case ')': case 0x85: case 0x86: case 0x87: case 'a': case 'e': case 's': case 'u': case 'Q': case 'R': case 'b': case 0x81: case 0x92: case 0x90: case 0x91: case 0x93:
            return change(opcode);
        default: return literal(opcode);
    }
}

// Opcodes that push what stands behind them, or what is empty. Those of protocol 0 (texts in lines) are not among them: torch.save writes none.
bool PickleScan::literal(std::uint8_t opcode) {
    const auto number = [this](unsigned width) {
        const std::uint64_t value = cursor_.little(width);
        return cursor_.ok() && push({Value::integer, 0, value});
    };
    switch (opcode) {
        case 'N': case 0x88: case 0x89: return push({});               // NONE, NEWTRUE, NEWFALSE
        case 'K': return number(1);                                    // BININT1
        case 'M': return number(2);                                    // BININT2
        case 'J': {                                                    // BININT
            const std::uint64_t value = cursor_.little(4);
            return cursor_.ok() && push({value >> 31 == 0 ? Value::integer : Value::nothing, 0, value});  // what is negative is neither size nor offset
        }
        case 0x8A: {                                                   // LONG1
            const std::uint64_t width = cursor_.little(1);
            const ByteView digits = cursor_.take(width);
            if (!cursor_.ok()) return false;
            if (width == 0) return push({Value::integer, 0, 0});
            if (width > 8 || (digits.back() & std::byte{0x80}) != std::byte{}) return push({});
            return push({Value::integer, 0, Cursor(digits).little(static_cast<unsigned>(width))});
        }
        case 'G': cursor_.skip(8); return cursor_.ok() && push({});    // BINFLOAT
        case 0x8B: case 'B': case 'T': return push_bytes(4);           // LONG4, BINBYTES, BINSTRING
        case 'C': case 'U': return push_bytes(1);                      // SHORT_BINBYTES, SHORT_BINSTRING
        case 0x8E: case 0x96: return push_bytes(8);                    // BINBYTES8, BYTEARRAY8
        case 0x8C: return push_text(1);                                // SHORT_BINUNICODE
        case 'X': return push_text(4);                                 // BINUNICODE
        case 0x8D: return push_text(8);                                // BINUNICODE8
        case ']': case '}': case 0x8F: return push_container();        // EMPTY_LIST, EMPTY_DICT, EMPTY_SET
        default: return false;                                         // STOP, and what is unknown
    }
}

bool PickleScan::memo(std::uint8_t opcode) {
    if (opcode == 0x94) return put(memo_.size());                      // MEMOIZE
    const std::uint64_t index = cursor_.little(opcode == 'q' || opcode == 'h' ? 1 : 4);
    if (!cursor_.ok()) return false;
    return opcode == 'q' || opcode == 'r' ? put(index) : get(index);   // BINPUT, LONG_BINPUT; BINGET, LONG_BINGET
}

// Opcodes that make something of what is on the stack.
bool PickleScan::change(std::uint8_t opcode) {
    switch (opcode) {
        case ')': return push({Value::tuple, 0, tuples_.size()});      // EMPTY_TUPLE
        case 0x85: case 0x86: case 0x87: return make_tuple(from_top(opcode - 0x84u));  // TUPLE1, TUPLE2, TUPLE3
        case 't': return make_tuple(take_mark());                      // TUPLE; the values behind the mark are still there
        case 'a': return fill(from_top(1), false);                     // APPEND
        case 's': return fill(from_top(2), true);                      // SETITEM
        case 'e': case 0x90: return fill(take_mark(), false);          // APPENDS, ADDITEMS
        case 'u': return fill(take_mark(), true);                      // SETITEMS
        case 0x91: return cut(take_mark()) && push({});                // FROZENSET
        case 0x93: {                                                   // STACK_GLOBAL
            if (!has(2)) return false;
            const Value name = pop(), module = pop();
            return push(torch_value(text(module), text(name)));
        }
        case 'Q': return persistent();                                 // BINPERSID
        case 'R': case 0x81: return called();                          // REDUCE, NEWOBJ: a call of a function, or of a class
        case 0x92: return cut(from_top(1)) && called();                // NEWOBJ_EX: with named arguments
        case 'b': {                                                    // BUILD: what the object's dict holds lies in the object
            if (!has(2)) return false;
            const Value state = pop();
            if (stack_.back().kind == Value::container) place(state, stack_.back().at, {});
            return true;
        }
        default: return false;
    }
}

bool PickleScan::push(Value value) {
    if (stack_.size() >= stack_max) return false;
    stack_.push_back(value);
    return true;
}

Value PickleScan::pop() {
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
}

// Where the last mark stands, which is no more; what was pushed since is still there.
std::size_t PickleScan::take_mark() {
    if (marks_.empty()) return none;
    const std::size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
}

bool PickleScan::cut(std::size_t from) {
    if (from == none) return false;
    stack_.resize(from);
    return true;
}

bool PickleScan::push_text(unsigned length_width) {
    const std::uint64_t length = cursor_.little(length_width), at = cursor_.at();
    cursor_.skip(length);
    return cursor_.ok() && push({length <= UINT32_MAX ? Value::text : Value::nothing, static_cast<std::uint32_t>(length), at});
}

bool PickleScan::push_bytes(unsigned length_width) {
    cursor_.skip(cursor_.little(length_width));
    return cursor_.ok() && push({});
}

bool PickleScan::push_global() {
    const std::string_view module = cursor_.line(), name = cursor_.line();
    return cursor_.ok() && push(torch_value(module, name));
}

bool PickleScan::push_container() {
    if (containers_.size() >= remembered_max) return false;
    containers_.emplace_back();
    return push({Value::container, 0, containers_.size() - 1});
}

bool PickleScan::make_tuple(std::size_t from) {
    if (from == none || tuples_.size() + (stack_.size() - from) > remembered_max) return false;
    const Value tuple{Value::tuple, static_cast<std::uint32_t>(stack_.size() - from), tuples_.size()};
    tuples_.insert(tuples_.end(), stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
    stack_.resize(from);
    return push(tuple);
}

// Who writes pickles counts the memo up by one. A number that is further on would take room for what is not there.
bool PickleScan::put(std::uint64_t index) {
    if (!has(1) || index > memo_.size() || index >= remembered_max) return false;
    if (index == memo_.size()) memo_.push_back(stack_.back());
    else memo_[index] = stack_.back();
    return true;
}

bool PickleScan::get(std::uint64_t index) { return index < memo_.size() && push(memo_[index]); }

// ("storage", class, key, place, numbers): how many there are the archive's entry says.
bool PickleScan::persistent() {
    if (!has(1)) return false;
    const Value id = pop();
    if (id.kind != Value::tuple || id.count < 3 || text(element(id, 0)) != "storage" || element(id, 1).kind != Value::type || element(id, 2).kind != Value::text || element(id, 2).count > key_bytes_max) return push({});
    const std::string_view key = text(element(id, 2));
    const auto type = static_cast<DataType>(element(id, 1).at);
    const auto [at, is_new] = by_key_.try_emplace(key, found_.storages.size());
    if (is_new) found_.storages.push_back({key, type});
    else if (found_.storages[at->second].type != type) found_.storages[at->second].type = DataType::bytes;
    return found_.storages.size() <= extents_max && push({Value::storage, 0, at->second});
}

bool PickleScan::called() {
    if (!has(2)) return false;
    const Value arguments = pop(), function = pop();
    const Value made = rebuilt(function, arguments);
    return made.kind == Value::nothing ? push_container() : push(made);
}

Value PickleScan::rebuilt(const Value& function, const Value& arguments) {
    if (function.kind != Value::rebuild || arguments.kind != Value::tuple) return {};
    if (function.at == Rebuild::of_call && arguments.count >= 3)
        return element(arguments, 0).at != Rebuild::of_call ? rebuilt(element(arguments, 0), element(arguments, 2)) : Value{};
    if (function.at == Rebuild::of_tensor && arguments.count >= 1 && element(arguments, 0).kind == Value::tensor) return element(arguments, 0);
    if ((function.at != Rebuild::of_storage && function.at != Rebuild::typed) || arguments.count < (function.at == Rebuild::typed ? 7u : 4u)) return {};
    const Value& storage = element(arguments, 0);
    const Value& offset = element(arguments, 1);
    if (storage.kind != Value::storage || offset.kind != Value::integer || found_.tensors.size() >= extents_max) return {};
    PickledTensor tensor;
    tensor.storage = storage.at;
    tensor.type = found_.storages[storage.at].type;
    tensor.offset = offset.at;
    if (function.at == Rebuild::typed) tensor.type = element(arguments, 6).kind == Value::type ? static_cast<DataType>(element(arguments, 6).at) : DataType::bytes;
    if (!lengths_of(element(arguments, 2), tensor.shape) || !lengths_of(element(arguments, 3), tensor.strides) || tensor.shape.size() != tensor.strides.size()) return {};
    found_.tensors.push_back(std::move(tensor));
    places_.emplace_back();
    return {Value::tensor, 0, found_.tensors.size() - 1};
}

bool PickleScan::lengths_of(const Value& tuple, std::vector<std::uint64_t>& lengths) const {
    if (tuple.kind != Value::tuple || tuple.count > axes_max) return false;
    for (std::size_t i = 0; i < tuple.count; ++i) {
        if (element(tuple, i).kind != Value::integer) return false;
        lengths.push_back(element(tuple, i).at);
    }
    return true;
}

// The values from there on go into the container below them.
bool PickleScan::fill(std::size_t from, bool is_dict) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (from == none || from <= floor) return false;
    const Value into = stack_[from - 1];
    if (into.kind == Value::container) {
        for (std::size_t i = from; is_dict && i + 1 < stack_.size(); i += 2) place(stack_[i + 1], into.at, stack_[i]);
        for (std::size_t i = from; !is_dict && i < stack_.size(); ++i) place(stack_[i], into.at, {Value::integer, 0, containers_[into.at].listed++});
    }
    stack_.resize(from);
    return true;
}

void PickleScan::place(const Value& thing, std::size_t in, const Value& key) {
    if (thing.kind != Value::tensor && thing.kind != Value::container) return;
    Place& at = thing.kind == Value::tensor ? places_[thing.at] : containers_[thing.at].place;
    if (at.in == none) at = {in, key};
}

std::string PickleScan::path(Place place) const {
    std::string name;
    for (std::size_t depth = 0; place.in != none; ++depth) {
        const Value& key = place.key;
        if (depth == name_depth_max || key.count > name_bytes_max) return {};
        const std::string step = key.kind == Value::integer ? std::to_string(key.at) : std::string(text(key));
        if (!step.empty()) name = name.empty() ? step : step + "/" + name;
        if (name.size() > name_bytes_max) return {};
        place = containers_[place.in].place;
    }
    return name;
}

}  // namespace

Pickled scan_pickle(ByteView pickle) { return PickleScan(pickle).run(); }

}  // namespace cairn
