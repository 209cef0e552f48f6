// Datasets in one piece: where they lie, of what they are.
#include "describer/hdf5.hpp"

#include <complex>

#include "describer/hdf5_testing.hpp"
#include "describe/hdf5_signature.hpp"

namespace cairn::testing {
namespace {

using How = Hdf5Writer::How;

TEST(Hdf5, NumbersOfEachTypeAreWhereTheyWereWritten) {
    const Folder folder;
    const std::string path = folder.file("numbers.h5");
    const std::vector<int> values = {1, -2, 3, -4, 5, -6};
    const std::vector<int> positive = {1, 2, 3, 4, 5, 6};
    Hdf5Writer writer(path);
    writer.dataset("i8", H5T_STD_I8LE, H5T_NATIVE_INT, {6}, values.data());
    writer.dataset("u8", H5T_STD_U8BE, H5T_NATIVE_INT, {6}, positive.data());
    writer.dataset("i16", H5T_STD_I16BE, H5T_NATIVE_INT, {6}, values.data());
    writer.dataset("u16", H5T_STD_U16LE, H5T_NATIVE_INT, {6}, positive.data());
    writer.dataset("i32", H5T_STD_I32LE, H5T_NATIVE_INT, {3, 2}, values.data());
    writer.dataset("u32", H5T_STD_U32BE, H5T_NATIVE_INT, {6}, positive.data());
    writer.dataset("i64", H5T_STD_I64BE, H5T_NATIVE_INT, {1, 2, 3}, values.data());
    writer.dataset("u64", H5T_STD_U64LE, H5T_NATIVE_INT, {6}, positive.data());
    writer.dataset("f32", H5T_IEEE_F32BE, H5T_NATIVE_INT, {6}, values.data());
    writer.dataset("f64", H5T_IEEE_F64LE, H5T_NATIVE_INT, {2, 3}, values.data());
    writer.close();
    const Said said = said_of(path);
    EXPECT_EQ(said.extents.size(), 10u);
    const auto expect = [&]<class T>(T, const std::string& name, DataType type, bool is_big_endian, const std::vector<std::uint64_t>& shape, const std::vector<int>& written) {
        const Extent& extent = said.at(name);
        EXPECT_EQ(extent.type, type) << name;
        EXPECT_EQ(extent.is_big_endian, is_big_endian) << name;
        EXPECT_EQ(extent.shape, shape) << name;
        EXPECT_EQ(said.values<T>(extent), std::vector<T>(written.begin(), written.end())) << name;
    };
    expect(std::int8_t{}, "i8", DataType::i8, false, {6}, values);
    expect(std::uint8_t{}, "u8", DataType::u8, false, {6}, positive);
    expect(std::int16_t{}, "i16", DataType::i16, true, {6}, values);
    expect(std::uint16_t{}, "u16", DataType::u16, false, {6}, positive);
    expect(std::int32_t{}, "i32", DataType::i32, false, {3, 2}, values);
    expect(std::uint32_t{}, "u32", DataType::u32, true, {6}, positive);
    expect(std::int64_t{}, "i64", DataType::i64, true, {1, 2, 3}, values);
    expect(std::uint64_t{}, "u64", DataType::u64, false, {6}, positive);
    expect(float{}, "f32", DataType::f32, true, {6}, values);
    expect(double{}, "f64", DataType::f64, false, {2, 3}, values);
}

// A float of 16 bits, by where its fields lie.
Hdf5Id half(hid_t from, std::size_t exponent_at, std::size_t exponent_bits, std::size_t bias) {
    Hdf5Id type(H5Tcopy(from));
    H5Tset_fields(type.get(), 15, exponent_at, exponent_bits, 0, exponent_at);
    H5Tset_size(type.get(), 2);
    H5Tset_ebias(type.get(), bias);
    return type;
}

TEST(Hdf5, HalvesAreTwoTypesAndOtherFloatsNone) {
    const Folder folder;
    const std::string path = folder.file("halves.h5");
    const std::vector<double> values = {1.0, -2.0, 0.5};
    Hdf5Writer writer(path);
    writer.dataset("ieee", half(H5T_IEEE_F32LE, 10, 5, 15).get(), H5T_NATIVE_DOUBLE, {3}, values.data());
    writer.dataset("brain", half(H5T_IEEE_F32BE, 7, 8, 127).get(), H5T_NATIVE_DOUBLE, {3}, values.data());
    writer.dataset("biased", half(H5T_IEEE_F32LE, 10, 5, 16).get(), H5T_NATIVE_DOUBLE, {3}, values.data());
    writer.dataset("vax", H5T_VAX_F32, H5T_VAX_F32, {1}, values.data());
    writer.close();
    const Said said = said_of(path);
    ASSERT_EQ(said.extents.size(), 2u);
    EXPECT_EQ(said.at("ieee").type, DataType::f16);
    EXPECT_EQ(said.values<std::uint16_t>(said.at("ieee")), (std::vector<std::uint16_t>{0x3c00, 0xc000, 0x3800}));
    EXPECT_EQ(said.at("brain").type, DataType::bf16);
    EXPECT_TRUE(said.at("brain").is_big_endian);
    EXPECT_EQ(said.values<std::uint16_t>(said.at("brain")), (std::vector<std::uint16_t>{0x3f80, 0xc000, 0x3f00}));
}

Hdf5Id pair_of(hid_t first, hid_t second, std::size_t gap = 0) {
    Hdf5Id type(H5Tcreate(H5T_COMPOUND, H5Tget_size(first) + gap + H5Tget_size(second)));
    H5Tinsert(type.get(), "r", 0, first);
    H5Tinsert(type.get(), "i", H5Tget_size(first) + gap, second);
    return type;
}

TEST(Hdf5, PairsOfFloatsAreComplexAndOtherRecordsWords) {
    const Folder folder;
    const std::string path = folder.file("records.h5");
    const std::vector<std::complex<double>> values = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    const std::vector<std::complex<float>> floats = {{1, 2}, {3, 4}};
    Hdf5Writer writer(path);
    const Hdf5Id complex = pair_of(H5T_IEEE_F64LE, H5T_IEEE_F64LE), small = pair_of(H5T_IEEE_F32LE, H5T_IEEE_F32LE), mixed = pair_of(H5T_IEEE_F64LE, H5T_STD_I64LE),
                 orders = pair_of(H5T_IEEE_F64LE, H5T_IEEE_F64BE), gap = pair_of(H5T_IEEE_F32LE, H5T_IEEE_F32LE, 8), record_of_records = pair_of(small.get(), H5T_STD_I64LE);
    writer.dataset("complex", complex.get(), complex.get(), {2, 2}, values.data());
    writer.dataset("small", small.get(), small.get(), {2}, floats.data());
    for (const auto& [name, type] : std::map<std::string, hid_t>{{"mixed", mixed.get()}, {"orders", orders.get()}, {"gap", gap.get()}, {"nested", record_of_records.get()}})
        writer.dataset(name, type, type, {2, 2}, values.data());
    Hdf5Id text(H5Tcopy(H5T_C_S1)), vary(H5Tvlen_create(H5T_NATIVE_INT));
    H5Tset_size(text.get(), H5T_VARIABLE);
    for (const auto& [name, member] : std::map<std::string, hid_t>{{"with text", text.get()}, {"with list", vary.get()}}) {
        const Hdf5Id type = pair_of(H5T_IEEE_F64LE, member);
        writer.dataset(name, type.get(), type.get(), {2}, nullptr, How{.written = false});
    }
    writer.close();
    const Said said = said_of(path);
    EXPECT_EQ(said.at("complex").type, DataType::c128);
    EXPECT_EQ(said.at("complex").shape, (std::vector<std::uint64_t>{2, 2}));
    EXPECT_EQ(said.values<std::complex<double>>(said.at("complex")), values);
    EXPECT_EQ(said.at("small").type, DataType::c64);
    EXPECT_EQ(said.values<std::complex<float>>(said.at("small")), floats);
    for (const auto& [name, type] : std::map<std::string, DataType>{{"mixed", DataType::u64}, {"orders", DataType::u64}, {"gap", DataType::u32}, {"nested", DataType::u32}}) {
        EXPECT_EQ(said.at(name).type, type) << name;
        EXPECT_EQ(said.at(name).shape, (std::vector<std::uint64_t>{2, 2, 16 / type_bytes(type)})) << name;
        if (name == "gap") continue;  // its bytes between are nobody's
        EXPECT_EQ(said.values<std::complex<double>>(said.at(name)), values) << name;
    }
    EXPECT_EQ(said.extents.size(), 6u);
}

// Fields one after the other, from the first byte on or from another; a text of 3 bytes has no number.
Hdf5Id record_of(const std::vector<hid_t>& fields, std::size_t bytes, std::size_t begin = 0) {
    Hdf5Id type(H5Tcreate(H5T_COMPOUND, bytes));
    for (std::size_t i = 0; i < fields.size(); begin += H5Tget_size(fields[i]), ++i) H5Tinsert(type.get(), std::to_string(i).c_str(), begin, fields[i]);
    return type;
}

TEST(Hdf5, RecordsAreWordsOfTheWidthThatMostOfTheirBytesHave) {
    const hsize_t three[] = {3};
    const Hdf5Id position(H5Tarray_create2(H5T_IEEE_F64LE, 1, three)), velocity(H5Tarray_create2(H5T_IEEE_F32LE, 1, three)), big(H5Tarray_create2(H5T_IEEE_F32BE, 1, three));
    const Hdf5Id text(H5Tcopy(H5T_C_S1)), inner = record_of({H5T_STD_I16LE, H5T_STD_I16LE}, 4), list(H5Tarray_create2(inner.get(), 1, three));
    H5Tset_size(text.get(), 3);
    struct {
        std::string name;
        Hdf5Id type;
        DataType is;
        std::vector<std::uint64_t> shape;
        bool is_big_endian = false;
    } rows[] = {
        {"vectors", record_of({position.get(), H5T_IEEE_F64LE}, 32), DataType::f64, {2, 4}},
        {"big vectors", record_of({big.get(), big.get()}, 24), DataType::f32, {2, 6}, true},
        {"big mixed", record_of({big.get(), H5T_STD_U32BE}, 16), DataType::u32, {2, 4}, true},
        {"particle", record_of({H5T_STD_I64LE, position.get(), velocity.get(), H5T_STD_I32LE}, 48), DataType::u64, {2, 6}},
        {"short", record_of({velocity.get(), H5T_STD_I64LE}, 20), DataType::u32, {2, 5}},
        {"packed", record_of({H5T_IEEE_F64LE, H5T_STD_I32LE, H5T_STD_U8LE}, 13), DataType::u8, {2, 13}},
        {"beside", record_of({H5T_STD_I32LE, H5T_IEEE_F64LE}, 16, 1), DataType::u64, {2, 2}},
        {"inner", record_of({list.get(), H5T_IEEE_F32LE}, 16), DataType::u16, {2, 8}},
        {"texts", record_of({text.get()}, 3), DataType::bytes, {2, 3}},
        {"text and number", record_of({text.get(), H5T_STD_U8LE}, 4), DataType::u8, {2, 4}},
    };
    const Folder folder;
    const std::string path = folder.file("records.h5");
    const std::vector<std::byte> values(200, std::byte{7});
    Hdf5Writer writer(path);
    for (const auto& row : rows) writer.dataset(row.name, row.type.get(), row.type.get(), {2}, values.data());
    writer.close();
    const Said said = said_of(path);
    for (const auto& row : rows) {
        EXPECT_EQ(said.at(row.name).type, row.is) << row.name;
        EXPECT_EQ(said.at(row.name).shape, row.shape) << row.name;
        EXPECT_EQ(said.at(row.name).is_big_endian, row.is_big_endian) << row.name;
    }
}

TEST(Hdf5, ArraysAddTheirAxesAndEnumsAreTheirBase) {
    const Folder folder;
    const std::string path = folder.file("arrays.h5");
    const hsize_t inner[] = {3}, outer[] = {2, 2};
    const Hdf5Id vector(H5Tarray_create2(H5T_IEEE_F64LE, 1, inner)), matrix(H5Tarray_create2(vector.get(), 2, outer)), truth(H5Tenum_create(H5T_STD_I8LE));
    const signed char no = 0, yes = 1;
    H5Tenum_insert(truth.get(), "FALSE", &no);
    H5Tenum_insert(truth.get(), "TRUE", &yes);
    const std::vector<double> values = ramp(60);
    const std::vector<signed char> truths = {0, 1, 1, 0};
    Hdf5Writer writer(path);
    writer.dataset("vectors", vector.get(), vector.get(), {4, 5}, values.data());
    writer.dataset("matrices", matrix.get(), matrix.get(), {5}, values.data());
    writer.dataset("truths", truth.get(), truth.get(), {4}, truths.data());
    writer.close();
    const Said said = said_of(path);
    EXPECT_EQ(said.at("vectors").shape, (std::vector<std::uint64_t>{4, 5, 3}));
    EXPECT_EQ(said.values<double>(said.at("vectors")), values);
    EXPECT_EQ(said.at("matrices").shape, (std::vector<std::uint64_t>{5, 2, 2, 3}));
    EXPECT_EQ(said.at("matrices").type, DataType::f64);
    EXPECT_EQ(said.values<double>(said.at("matrices")), values);
    EXPECT_EQ(said.at("truths").type, DataType::i8);
    EXPECT_EQ(said.values<signed char>(said.at("truths")), truths);
}

TEST(Hdf5, WhatIsNoNumberOrElsewhereIsSkeleton) {
    const Folder folder;
    const std::string path = folder.file("skeleton.h5");
    const std::vector<double> values = ramp(100);
    Hdf5Writer writer(path);
    Hdf5Id text(H5Tcopy(H5T_C_S1)), vary(H5Tcopy(H5T_C_S1)), opaque(H5Tcreate(H5T_OPAQUE, 8)), list(H5Tvlen_create(H5T_NATIVE_INT));
    H5Tset_size(text.get(), 8);
    H5Tset_size(vary.get(), H5T_VARIABLE);
    writer.dataset("text", text.get(), text.get(), {10}, values.data());
    writer.dataset("vary", vary.get(), vary.get(), {2}, nullptr, How{.written = false});
    writer.dataset("list", list.get(), list.get(), {2}, nullptr, How{.written = false});
    writer.dataset("opaque", opaque.get(), opaque.get(), {10}, values.data());
    writer.dataset("reference", H5T_STD_REF_OBJ, H5T_STD_REF_OBJ, {2}, nullptr, How{.written = false});
    writer.doubles("compact", {100}, values, How{.compact = true});
    writer.doubles("external", {100}, values, How{.external = folder.file("beside.bin")});
    writer.doubles("never written", {100}, values, How{.written = false});
    writer.doubles("empty", {0, 5}, {});
    const Hdf5Id null(H5Screate(H5S_NULL));
    Hdf5Id(H5Dcreate2(writer.file(), "null", H5T_IEEE_F64LE, null.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const hsize_t hundred = 100;
    const Hdf5Id source(H5Screate_simple(1, &hundred, nullptr)), layout(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_virtual(layout.get(), source.get(), path.c_str(), "/scalar", source.get());
    Hdf5Id(H5Dcreate2(writer.file(), "virtual", H5T_IEEE_F64LE, source.get(), H5P_DEFAULT, layout.get(), H5P_DEFAULT));
    Hdf5Id(H5Tcommit2(writer.file(), "type", pair_of(H5T_IEEE_F64LE, H5T_IEEE_F64LE).get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0 ? -1 : -1);
    writer.doubles("scalar", {}, {42.0});
    writer.close();
    const Said said = said_of(path);
    EXPECT_EQ(said.names(), std::vector<std::string>{"scalar"});
    EXPECT_TRUE(said.at("scalar").shape.empty());
    EXPECT_EQ(said.values<double>(said.at("scalar")), std::vector<double>{42.0});
}

TEST(Hdf5, GroupsThatGoInCirclesAreVisitedOnce) {
    const Folder folder;
    const std::string path = folder.file("circle.h5");
    Hdf5Writer writer(path);
    writer.group("a");
    writer.group("a/b");
    writer.doubles("a/b/x", {5}, ramp(5));
    writer.doubles("y", {5}, ramp(5, 100));
    H5Lcreate_hard(writer.file(), "/a", writer.file(), "/a/b/up", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(writer.file(), "/", writer.file(), "/a/b/root", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(writer.file(), "/a/b/x", writer.file(), "/a/z", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/a", writer.file(), "/a/b/soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/nowhere", writer.file(), "/a/b/dangling", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/x", writer.file(), "/a/external", H5P_DEFAULT, H5P_DEFAULT);
    writer.close();
    const Said said = said_of(path);
    ASSERT_EQ(said.extents.size(), 2u);
    EXPECT_EQ(said.values<double>(said.at("a/z")), ramp(5));  // by the name that is nearest to the root
    EXPECT_EQ(said.values<double>(said.at("y")), ramp(5, 100));
}

TEST(Hdf5, DeepAndManyAreDescribedToTheLimit) {
    const Folder folder;
    const std::string deep = folder.file("deep.h5"), many = folder.file("many.h5");
    std::string name = "g";
    {
        Hdf5Writer writer(deep);
        hid_t above = writer.file();
        std::vector<Hdf5Id> groups;
        for (int i = 0; i < 300; ++i) {
            groups.emplace_back(H5Gcreate2(above, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            above = groups.back().get();
        }
        const std::vector<double> values = ramp(5);
        const hsize_t five = 5;
        const Hdf5Id space(H5Screate_simple(1, &five, nullptr)), made(H5Dcreate2(above, "x", H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5Dwrite(made.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    }
    const Said below = said_of(deep);
    ASSERT_EQ(below.extents.size(), 1u);
    EXPECT_EQ(below.values<double>(below.extents[0]), ramp(5));
    EXPECT_EQ(below.extents[0].name.size(), 255u);
    {
        Hdf5Writer writer(many);
        for (int i = 0; i < 1000; ++i) writer.doubles("x" + std::to_string(i), {3}, ramp(3, i));
    }
    const Said all = said_of(many);
    ASSERT_EQ(all.extents.size(), 1000u);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(all.values<double>(all.at("x" + std::to_string(i))), ramp(3, i));
}

// Dimension scales, as the netCDF library writes them: a scale of its own, attached by references in attributes.
TEST(Hdf5, NetcdfFourIsHdf5) {
    const Folder folder;
    const std::string path = folder.file("climate.nc");
    for (const bool newest : {false, true}) {
        Hdf5Writer writer(path, 0, newest);
        writer.doubles("time", {4}, ramp(4), How{.chunk = {4}, .most = {H5S_UNLIMITED}});
        writer.dataset("lat", H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE, {3}, ramp(3).data());
        writer.doubles("temperature", {4, 3}, ramp(12), How{.chunk = {2, 3}, .most = {H5S_UNLIMITED, 3}});
        const Hdf5Id time(H5Dopen2(writer.file(), "time", H5P_DEFAULT)), scalar(H5Screate(H5S_SCALAR));
        Hdf5Id text(H5Tcopy(H5T_C_S1));
        H5Tset_size(text.get(), 16);
        const Hdf5Id mark(H5Acreate2(time.get(), "CLASS", text.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
        H5Awrite(mark.get(), text.get(), "DIMENSION_SCALE");
        const Hdf5Id list(H5Tvlen_create(H5T_STD_REF_OBJ)), variable(H5Dopen2(writer.file(), "temperature", H5P_DEFAULT));
        const hsize_t two = 2;
        const Hdf5Id pair(H5Screate_simple(1, &two, nullptr)), scales(H5Acreate2(variable.get(), "DIMENSION_LIST", list.get(), pair.get(), H5P_DEFAULT, H5P_DEFAULT));
        hobj_ref_t to_time, to_lat;
        H5Rcreate(&to_time, writer.file(), "time", H5R_OBJECT, -1);
        H5Rcreate(&to_lat, writer.file(), "lat", H5R_OBJECT, -1);
        const hvl_t references[] = {{1, &to_time}, {1, &to_lat}};
        EXPECT_GE(H5Awrite(scales.get(), list.get(), references), 0);
    }
    const Said said = said_of(path);
    EXPECT_EQ(said.values<double>(said.at("time")), ramp(4));
    EXPECT_EQ(said.at("lat").type, DataType::f32);
    ASSERT_EQ(said.count("temperature"), 2u);
    EXPECT_EQ(said.at("temperature").shape, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ(said.values<double>(said.at("temperature", 1)), ramp(6, 3));
}

TEST(Hdf5, OffsetsAreOfTheFileAlsoBehindAUserBlock) {
    const Folder folder;
    const std::string path = folder.file("user.h5");
    for (const hsize_t block : {512, 2048}) {
        for (const bool newest : {false, true}) {
            Hdf5Writer writer(path, block, newest);
            writer.doubles("x", {50}, ramp(50));
            writer.doubles("chunked", {4, 4}, ramp(16), How{.chunk = {2, 4}});
            writer.doubles("packed", {1000}, std::vector<double>(1000, 1.0), How{.chunk = {1000}, .gzip = 6});
            writer.close();
            const Said said = said_of(path);
            EXPECT_EQ(hdf5_begins(said.bytes), block);
            EXPECT_EQ(said.values<double>(said.at("x")), ramp(50));
            EXPECT_EQ(said.values<double>(said.at("chunked", 1)), ramp(8, 4));
            EXPECT_EQ(said.values<std::uint8_t>(said.at("packed")).at(0), 0x78);  // zlib
        }
    }
}

TEST(Hdf5, WhatIsNoHdf5IsAnError) {
    for (const std::string& text : {std::string(), std::string("\x89HDF\r\n\x1a\n"), std::string("\x89HDF\r\n\x1a\n") + std::string(2000, '\xff'), std::string(5000, 'x')}) {
        const Result<std::vector<Extent>> said = describe_hdf5(as_bytes(text));
        EXPECT_EQ(said.code(), Code::corrupt) << text.size();
    }
}

}  // namespace
}  // namespace cairn::testing
