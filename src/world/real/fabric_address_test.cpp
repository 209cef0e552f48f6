#include "world/real/fabric_address.hpp"

#include <gtest/gtest.h>
#include <rdma/fabric.h>

namespace cairn {
namespace {

std::string there_and_back(std::string_view scheme, std::uint32_t format, const std::string& text) {
    Result<Bytes> raw = parse_fabric_address(scheme, format, text);
    EXPECT_TRUE(raw.ok()) << raw.status().to_string();
    if (!raw.ok()) return "";
    Result<std::string> printed = print_fabric_address(scheme, format, *raw);
    return std::move(printed).value_or("");
}

TEST(FabricAddress, PrintsWhatItParses) {
    EXPECT_EQ(there_and_back("tcp", FI_SOCKADDR_IN, "tcp://192.0.2.7:40123"), "tcp://192.0.2.7:40123");
    EXPECT_EQ(there_and_back("verbs", FI_SOCKADDR_IN, "verbs://10.0.0.1:1"), "verbs://10.0.0.1:1");
    EXPECT_EQ(there_and_back("tcp", FI_SOCKADDR_IN6, "tcp://[2001:db8::7]:65535"), "tcp://[2001:db8::7]:65535");
    EXPECT_EQ(there_and_back("tcp", FI_SOCKADDR, "tcp://[::1]:80"), "tcp://[::1]:80");
    EXPECT_EQ(there_and_back("tcp", FI_SOCKADDR, "tcp://127.0.0.1:80"), "tcp://127.0.0.1:80");
    EXPECT_EQ(there_and_back("efa", FI_ADDR_EFA, "efa://00ff10ab"), "efa://00ff10ab");
}

TEST(FabricAddress, MalformedTextIsRefusedAndNamed) {
    for (const char* text :
         {"", "tcp", "tcp://", "tcp://1.2.3.4", "tcp://1.2.3.4:", "tcp://1.2.3.4:0", "tcp://1.2.3.4:65536",
          "tcp://1.2.3.4:80x", "tcp://1.2.3:80", "tcp://host:80", "verbs://1.2.3.4:80", "tcp://[::1]:80", "1.2.3.4:80",
          "tcp://1.2.3.4:-1", "tcp://1.2.3.4: 80"}) {
        Result<Bytes> raw = parse_fabric_address("tcp", FI_SOCKADDR_IN, text);
        ASSERT_FALSE(raw.ok()) << text;
        EXPECT_EQ(raw.code(), Code::invalid_argument);
        EXPECT_NE(raw.status().text().find("'" + std::string(text) + "'"), std::string::npos);
    }
    for (const char* text : {"tcp://[::1]80", "tcp://::1:80", "tcp://[::1:80", "tcp://[]:80"})
        EXPECT_FALSE(parse_fabric_address("tcp", FI_SOCKADDR_IN6, text).ok()) << text;
    for (const char* text : {"efa://", "efa://0", "efa://0g", "efa://-1", "efa://+1"})
        EXPECT_FALSE(parse_fabric_address("efa", FI_ADDR_EFA, text).ok()) << text;
    EXPECT_FALSE(parse_fabric_address("efa", FI_ADDR_EFA, "efa://" + std::string(2000, 'a')).ok());
}

TEST(FabricAddress, ChoosesAnAddressOfThisHost) {
    EXPECT_EQ(choose_host_address("lo").value_or(""), "127.0.0.1");
    EXPECT_EQ(choose_host_address("127.0.0.1").value_or(""), "127.0.0.1");
    EXPECT_EQ(choose_host_address("127.0.0.5").value_or(""), "127.0.0.5");
    EXPECT_FALSE(choose_host_address("").value_or("").empty());
    Result<std::string> none = choose_host_address("no-such-interface");
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.code(), Code::invalid_argument);
    EXPECT_NE(none.status().text().find("no-such-interface"), std::string::npos);
    EXPECT_NE(none.status().text().find("lo 127.0.0.1"), std::string::npos) << none.status().text();
}

}  // namespace
}  // namespace cairn
