// Pickles made opcode by opcode, mostly such as torch does not write.
#include "describe/pickle.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

std::string pickled_text(const std::string& text) { return std::string("\x8C") + static_cast<char>(text.size()) + text; }
std::string storage(const std::string& key, const std::string& type = "FloatStorage") {
    return "(" + pickled_text("storage") + "ctorch\n" + type + "\n" + pickled_text(key) + pickled_text("cpu") + "K\x0CtQ";
}
// Of the storage on the stack's top, whole: shape and strides as opcodes.
std::string tensor(const std::string& stored, const std::string& shape = "K\x03K\x04\x86", const std::string& strides = "K\x04K\x01\x86") {
    return "ctorch._utils\n_rebuild_tensor_v2\n(" + stored + std::string("K\0", 2) + shape + strides + "\x89NtR";
}
std::string repeated(const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
}
// "name type shape" of each tensor, and "key type" of each storage.
std::string scanned(const std::string& pickle) {
    const Bytes bytes = to_bytes(pickle);
    const Pickled found = scan_pickle(bytes);
    std::string text;
    for (const PickledTensor& tensor : found.tensors) {
        text += tensor.name + " " + type_name(tensor.type);
        for (const std::uint64_t length : tensor.shape) text += " " + std::to_string(length);
        text += ", ";
    }
    for (const PickledStorage& storage : found.storages) text += std::string(storage.key) + " " + type_name(storage.type) + ", ";
    return text;
}

TEST(Pickle, ADictOfATensor) { EXPECT_EQ(scanned("\x80\x02}(" + pickled_text("a") + tensor(storage("0")) + "u."), "a f32 3 4, 0 f32, "); }

TEST(Pickle, WhatWasFoundBeforeAnUnknownOpcodeIsKept) {
    const std::string whole = "}(" + pickled_text("a") + tensor(storage("0")) + "u";
    EXPECT_EQ(scanned(whole + "\xFF" + tensor(storage("1"))), "a f32 3 4, 0 f32, ");
    EXPECT_EQ(scanned(storage("0") + "I12\n" + storage("1")), "0 f32, ");
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) scanned(whole.substr(0, bytes));
}

TEST(Pickle, StoragesOfTwoTypesAreOfNone) {
    EXPECT_EQ(scanned(storage("0") + storage("0", "LongStorage") + storage("1", "NobodysStorage") + storage("2", "Float8_e5m2Storage") + storage("2", "Float8_e5m2Storage")), "0 bytes, 1 bytes, 2 u8, ");
    EXPECT_EQ(scanned(storage("a key that is longer than any that torch makes, and that would be compared often")), "");
    EXPECT_EQ(scanned("(" + pickled_text("storage") + "cnumpy\nFloatStorage\n" + pickled_text("0") + pickled_text("cpu") + "tQ"), "");
}

TEST(Pickle, ATensorWhoseArgumentsAreOthersIsNone) {
    for (const std::string& other : {tensor("N"), tensor(storage("0"), "K\x03"), tensor(storage("0"), "NN\x86"), tensor(storage("0"), "K\x03\x85"), tensor(storage("0"), "J\xFF\xFF\xFF\xFFK\x04\x86"),
                                     tensor(storage("0"), "(" + repeated("K\x01", 33) + "t", "(" + repeated("K\x01", 33) + "t"), std::string("ctorch._utils\n_rebuild_tensor_v2\n)R"),
                                     std::string("ctorch._utils\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_from_type_v2\nN)NtR")})
        EXPECT_EQ(scanned("}(" + pickled_text("a") + other + "u.").find(" f32 "), std::string::npos) << other;
    EXPECT_EQ(scanned("}" + pickled_text("a") + "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\nN(" + storage("0") + std::string("K\0", 2) + "))tNtRs."), "a f32, 0 f32, ");
}

TEST(Pickle, StacksThatAreEmptyAndMarksThatAreNot) {
    for (const char* pickle : {"t", "u", "e", "a", "s", "0", "1", "2", "Q", "R", "b", "q\1", "h\1", "\x94", "\x93", "\x85", "\x86", "\x87", "\x81", "\x92", "\x90", "\x91", "(a", "(s", "(R", "(0", "}(u", "N(Na", "(u", "N(Nu",
                               "((((tttt", "}Na", "}NNs", "}(NNNu", "]](a", "c", "cx", "cx\n", "cx\ny", "\x8A\xFF", "\x8A\x09\1\1\1\1\1\1\1\1\1", "X\xFF\xFF\xFF\xFF", "\x8D\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"})
        EXPECT_EQ(scanned(pickle), "") << pickle;
    EXPECT_EQ(scanned("Nr\xFF\xFF\xFF\x7F" + storage("0")), "");  // a memo that would be long
}

// A dictionary in itself, and in many: names end.
TEST(Pickle, DictionariesInEachOther) {
    const std::string itself = "}q" + std::string(1, '\0');
    EXPECT_EQ(scanned(itself + pickled_text("a") + "h" + std::string(1, '\0') + "s" + pickled_text("b") + tensor(storage("0")) + "s."), " f32 3 4, 0 f32, ");
    const std::string deep = repeated("}" + pickled_text("a"), 100) + tensor(storage("0")) + repeated("s", 100);
    EXPECT_EQ(scanned(deep + "."), " f32 3 4, 0 f32, ");
    EXPECT_EQ(scanned(repeated("}" + pickled_text(std::string(100, 'k')), 3) + tensor(storage("0")) + "sss."), " f32 3 4, 0 f32, ");
}

// Each of these is a few bytes that say much; the scan ends, or goes on without remembering.
TEST(Pickle, MuchOfOneThing) {
    for (const std::string& one : {std::string("("), std::string("N"), std::string("}"), std::string(")"), std::string("N\x94"), std::string("N\x85"), std::string("(t0"), std::string("}0"), std::string("\x80\x02")})
        EXPECT_EQ(scanned(repeated(one, 1'200'000)), "") << one;
    // One tuple of arguments, called again and again.
    const std::string arguments = "(" + storage("0") + std::string("K\0", 2) + "(" + repeated("K\x01", 32) + "t(" + repeated("K\x01", 32) + "tt\x94" + "ctorch._utils\n_rebuild_tensor_v2\n\x94";
    const Bytes many = to_bytes(arguments + repeated(std::string("h\1h\0R0", 6), 1'000'000));
    EXPECT_LE(scan_pickle(many).tensors.size(), 65'536u);
}

}  // namespace
}  // namespace cairn
