#include "describer/hdf5_types.hpp"

#include <algorithm>
#include <array>

namespace cairn {

namespace {

constexpr int depth_max = 16;  // of arrays in arrays, records in records

struct Scalar {
    DataType type = DataType::bytes;
    bool is_big_endian = false;
    bool operator==(const Scalar&) const = default;
};

std::optional<bool> is_big_endian(hid_t type) {
    const H5T_order_t order = H5Tget_order(type);
    if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) return std::nullopt;
    return order == H5T_ORDER_BE && H5Tget_size(type) > 1;
}

// Of all bits of its bytes: one with padding is none that a codec knows.
std::optional<Scalar> integer(hid_t type) {
    const std::size_t bytes = H5Tget_size(type);
    const H5T_sign_t sign = H5Tget_sign(type);
    const std::optional<bool> swapped = is_big_endian(type);
    if (H5Tget_precision(type) != bytes * 8 || !swapped || (sign != H5T_SGN_NONE && sign != H5T_SGN_2)) return std::nullopt;
    const bool is_signed = sign == H5T_SGN_2;
    switch (bytes) {
        case 1: return Scalar{is_signed ? DataType::i8 : DataType::u8, *swapped};
        case 2: return Scalar{is_signed ? DataType::i16 : DataType::u16, *swapped};
        case 4: return Scalar{is_signed ? DataType::i32 : DataType::u32, *swapped};
        case 8: return Scalar{is_signed ? DataType::i64 : DataType::u64, *swapped};
        default: return std::nullopt;
    }
}

struct FloatBits {
    DataType type;
    std::size_t bytes, sign_at, exponent_at, exponent_bits, mantissa_bits, bias;
};
constexpr std::array float_types = {
    FloatBits{DataType::f16, 2, 15, 10, 5, 10, 15},
    FloatBits{DataType::bf16, 2, 15, 7, 8, 7, 127},
    FloatBits{DataType::f32, 4, 31, 23, 8, 23, 127},
    FloatBits{DataType::f64, 8, 63, 52, 11, 52, 1023},
};

std::optional<Scalar> floating(hid_t type) {
    std::size_t sign_at = 0, exponent_at = 0, exponent_bits = 0, mantissa_at = 0, mantissa_bits = 0;
    const std::optional<bool> swapped = is_big_endian(type);
    if (!swapped || H5Tget_fields(type, &sign_at, &exponent_at, &exponent_bits, &mantissa_at, &mantissa_bits) < 0 || mantissa_at != 0 || H5Tget_norm(type) != H5T_NORM_IMPLIED)
        return std::nullopt;
    const std::size_t bytes = H5Tget_size(type), bias = H5Tget_ebias(type);
    for (const FloatBits& known : float_types)
        if (known.bytes == bytes && known.sign_at == sign_at && known.exponent_at == exponent_at && known.exponent_bits == exponent_bits && known.mantissa_bits == mantissa_bits &&
            known.bias == bias)
            return Scalar{known.type, *swapped};
    return std::nullopt;
}

// Two floats of one type, side by side: what h5py and others make of complex numbers, by whatever names.
std::optional<Scalar> complex_number(hid_t type) {
    if (H5Tget_nmembers(type) != 2) return std::nullopt;
    std::array<Scalar, 2> parts;
    for (unsigned i = 0; i < 2; ++i) {
        const Hdf5Id member(H5Tget_member_type(type, i));
        if (!member || H5Tget_class(member.get()) != H5T_FLOAT) return std::nullopt;
        const std::optional<Scalar> part = floating(member.get());
        if (!part || H5Tget_member_offset(type, i) != i * H5Tget_size(member.get())) return std::nullopt;
        parts[i] = *part;
    }
    if (parts[0] != parts[1] || H5Tget_size(type) != 2 * type_bytes(parts[0].type)) return std::nullopt;
    if (parts[0].type == DataType::f32) return Scalar{DataType::c64, parts[0].is_big_endian};
    if (parts[0].type == DataType::f64) return Scalar{DataType::c128, parts[0].is_big_endian};
    return std::nullopt;
}

// All its bytes lie where it lies: it holds no reference to other places.
bool is_in_place(hid_t type, int depth) {
    switch (H5Tget_class(type)) {
        case H5T_INTEGER:
        case H5T_FLOAT:
        case H5T_TIME:
        case H5T_BITFIELD:
        case H5T_OPAQUE:
        case H5T_ENUM: return true;
        case H5T_STRING: return H5Tis_variable_str(type) == 0;
        case H5T_ARRAY: {
            const Hdf5Id each(H5Tget_super(type));
            return each && depth < depth_max && is_in_place(each.get(), depth + 1);
        }
        case H5T_COMPOUND: {
            const int members = H5Tget_nmembers(type);
            for (int i = 0; i < members; ++i) {
                const Hdf5Id member(H5Tget_member_type(type, static_cast<unsigned>(i)));
                if (!member || depth >= depth_max || !is_in_place(member.get(), depth + 1)) return false;
            }
            return members > 0;
        }
        default: return false;
    }
}

// The numbers in a record, each where it lies.
struct Numbers {
    std::vector<Scalar> scalars;  // one of those that are alike
    std::size_t bytes = 0;        // of them all
    std::array<std::size_t, 9> of_width = {};  // of those that are so wide and lie at a multiple of that
    void add(const Scalar& scalar, std::size_t offset, std::size_t count) {
        const bool is_complex = scalar.type == DataType::c64 || scalar.type == DataType::c128;
        const std::size_t width = type_bytes(scalar.type), part = is_complex ? width / 2 : width;
        if (std::find(scalars.begin(), scalars.end(), scalar) == scalars.end()) scalars.push_back(scalar);
        bytes += width * count;
        if (offset % part == 0) of_width[part] += width * count;
    }
    // Of the words of a record: as most of its bytes lie in numbers. Where others are wider or narrower, their halves or pairs are words all the same, each record's in the same place.
    std::size_t width(std::size_t record_bytes) const {
        std::size_t best = 1;
        for (const std::size_t width : {2, 4, 8})
            if (record_bytes % width == 0 && (of_width[width] > of_width[best] || of_width[best] == 0)) best = width;
        return best;
    }
};

std::optional<Scalar> scalar(hid_t type) {
    switch (H5Tget_class(type)) {
        case H5T_INTEGER: return integer(type);
        case H5T_FLOAT: return floating(type);
        case H5T_ENUM: {
            const Hdf5Id base(H5Tget_super(type));
            return base ? integer(base.get()) : std::nullopt;
        }
        case H5T_COMPOUND: return complex_number(type);
        default: return std::nullopt;
    }
}

// Of a type that is in place. False: a library's error, or deeper than anybody goes.
bool find_numbers(hid_t type, std::size_t offset, std::size_t count, int depth, Numbers& numbers) {
    if (const std::optional<Scalar> number = scalar(type)) {
        numbers.add(*number, offset, count);
        return true;
    }
    if (depth == depth_max) return false;
    if (H5Tget_class(type) == H5T_ARRAY) {
        const Hdf5Id each(H5Tget_super(type));
        const std::size_t each_bytes = each ? H5Tget_size(each.get()) : 0;
        return each_bytes != 0 && find_numbers(each.get(), offset, count * (H5Tget_size(type) / each_bytes), depth + 1, numbers);
    }
    if (H5Tget_class(type) != H5T_COMPOUND) return true;
    const int members = H5Tget_nmembers(type);
    for (int i = 0; i < members; ++i) {
        const Hdf5Id member(H5Tget_member_type(type, static_cast<unsigned>(i)));
        if (!member || !find_numbers(member.get(), offset + H5Tget_member_offset(type, static_cast<unsigned>(i)), count, depth + 1, numbers)) return false;
    }
    return true;
}

// A record as so many words, so that each is predicted from the one in the record before. Where all are numbers of one type that is theirs; else they are
// integers, and where there is no number at all they are bytes.
std::optional<Hdf5Number> record(hid_t type) {
    if (!is_in_place(type, 0)) return std::nullopt;
    const std::size_t bytes = H5Tget_size(type);
    const Hdf5Number unknown{DataType::bytes, false, {bytes}, true};
    Numbers numbers;
    if (!find_numbers(type, 0, 1, 0, numbers) || numbers.scalars.empty()) return unknown;
    const Scalar& first = numbers.scalars.front();
    if (numbers.scalars.size() == 1 && numbers.bytes == bytes) return Hdf5Number{first.type, first.is_big_endian, {bytes / type_bytes(first.type)}, true};
    const std::size_t width = numbers.width(bytes);
    const bool is_big = std::all_of(numbers.scalars.begin(), numbers.scalars.end(), [](const Scalar& each) { return each.is_big_endian || type_bytes(each.type) == 1; });
    const DataType integers = width == 8 ? DataType::u64 : width == 4 ? DataType::u32 : width == 2 ? DataType::u16 : DataType::u8;
    return Hdf5Number{integers, is_big && width > 1, {bytes / width}, true};
}

std::optional<Hdf5Number> element(hid_t type) {
    if (const std::optional<Scalar> number = scalar(type)) return Hdf5Number{number->type, number->is_big_endian, {}};
    return H5Tget_class(type) == H5T_COMPOUND ? record(type) : std::nullopt;
}

}  // namespace

std::optional<Hdf5Number> hdf5_number(hid_t type) {
    std::vector<std::uint64_t> axes;
    Hdf5Id inner;  // of arrays, what they are of
    for (int depth = 0; H5Tget_class(inner ? inner.get() : type) == H5T_ARRAY; ++depth) {
        const hid_t array = inner ? inner.get() : type;
        const int count = H5Tget_array_ndims(array);
        std::vector<hsize_t> lengths(count > 0 ? static_cast<std::size_t>(count) : 0);
        if (count <= 0 || depth == depth_max || H5Tget_array_dims(array, lengths.data()) < 0) return std::nullopt;
        axes.insert(axes.end(), lengths.begin(), lengths.end());
        inner = Hdf5Id(H5Tget_super(array));
        if (!inner) return std::nullopt;
    }
    std::optional<Hdf5Number> number = element(inner ? inner.get() : type);
    if (number) number->axes.insert(number->axes.begin(), axes.begin(), axes.end());
    return number;
}

}  // namespace cairn
