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

std::optional<Hdf5Number> element(hid_t type) {
    std::optional<Scalar> scalar;
    switch (H5Tget_class(type)) {
        case H5T_INTEGER: scalar = integer(type); break;
        case H5T_FLOAT: scalar = floating(type); break;
        case H5T_ENUM: {
            const Hdf5Id base(H5Tget_super(type));
            if (base) scalar = integer(base.get());
            break;
        }
        case H5T_COMPOUND:
            scalar = complex_number(type);
            if (!scalar && is_in_place(type, 0)) return Hdf5Number{DataType::bytes, false, {H5Tget_size(type)}};
            break;
        default: break;
    }
    if (!scalar) return std::nullopt;
    return Hdf5Number{scalar->type, scalar->is_big_endian, {}};
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
