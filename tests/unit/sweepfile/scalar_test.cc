#include "sweepfile/scalar.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/result.h"
#include "sweepfile/suggest.h"

namespace attune::sweepfile {
namespace {

Node Plain(std::string text) { return {.kind = Node::Kind::kScalar, .text = std::move(text)}; }

TEST(Scalar, FollowsTheCoreSchemaOfYaml12) {
  const std::pair<const char*, Value> cases[] = {{"true", true},
                                                 {"False", false},
                                                 {"tRUE", "tRUE"},
                                                 {"yes", "yes"},
                                                 {"no", "no"},
                                                 {"0", int64_t{0}},
                                                 {"-7", int64_t{-7}},
                                                 {"+7", int64_t{7}},
                                                 {"007", int64_t{7}},
                                                 {"0o17", int64_t{15}},
                                                 {"0xff", int64_t{255}},
                                                 {"0b1", "0b1"},
                                                 {"1_000", "1_000"},
                                                 {"1e-3", 0.001},
                                                 {"1E3", 1000.0},
                                                 {"1.", 1.0},
                                                 {".5", 0.5},
                                                 {"-.5", -0.5},
                                                 {"+1.5", 1.5},
                                                 {".", "."},
                                                 {"1e", "1e"},
                                                 {"e5", "e5"},
                                                 {"1.2.3", "1.2.3"},
                                                 {"--1", "--1"},
                                                 {"0o8", "0o8"},
                                                 {"0x", "0x"},
                                                 {"nan", "nan"},
                                                 {"inf", "inf"},
                                                 {"1:30", "1:30"},
                                                 {"2024-01-01", "2024-01-01"}};
  for (const auto& [text, value] : cases) {
    const Result<Value> read = ReadValue(Plain(text));
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_EQ(*read, value) << text;
  }
  for (const char* text : {".nan", ".inf", "-.INF", "9223372036854775808", "1e309", "1e-400"}) {
    EXPECT_FALSE(ReadValue(Plain(text)).ok()) << text;
  }
}

TEST(Scalar, IntegersMayBeWrittenAsReals) {
  EXPECT_EQ(*ReadInteger(Plain("1e3")), 1000);
  EXPECT_EQ(*ReadInteger(Plain("8.0")), 8);
  EXPECT_FALSE(ReadInteger(Plain("1e18")).ok());  // beyond 2^53 reals skip integers
  EXPECT_EQ(*ReadInteger(Plain("9007199254740991")), 9007199254740991);
  EXPECT_EQ(*ReadInteger(Plain("-9007199254740991")), -9007199254740991);
  for (const char* text : {"9007199254740992", "-9007199254740992", "0x20000000000000",
                           "9007199254740992.0", "9.007199254740992e15", "9223372036854775807"})
    EXPECT_FALSE(ReadInteger(Plain(text)).ok()) << text;
  EXPECT_FALSE(ReadNumber(Plain("9007199254740993")).ok());
}

TEST(Scalar, DurationsHaveUnits) {
  EXPECT_EQ(ReadDuration(Plain("500ms"))->value, 0.5);
  EXPECT_EQ(ReadDuration(Plain("1.5 h"))->value, 5400);
  EXPECT_EQ(ReadDuration(Plain("2d"))->value, 172800);
  for (const char* text : {"10", "-5s", "s", "1m30s", "5S", "infs", "1e400s", "", "1e308d"}) {
    EXPECT_FALSE(ReadDuration(Plain(text)).ok()) << text;
  }
}

TEST(Scalar, SizesHaveUnitsAndWholeBytes) {
  EXPECT_EQ(*ReadSize(Plain("16GiB")), int64_t{16} << 30);
  EXPECT_EQ(*ReadSize(Plain("1.5KiB")), 1536);
  EXPECT_EQ(*ReadSize(Plain("2GB")), 2'000'000'000);
  EXPECT_EQ(*ReadSize(Plain("9223372036854775807B")), std::numeric_limits<int64_t>::max());
  for (const char* text : {"16", "-1B", "1.5B", "16gib", "9223372036854775808B", "8388608TiB"}) {
    EXPECT_FALSE(ReadSize(Plain(text)).ok()) << text;
  }
}

TEST(Scalar, WhatIsFormattedReadsBackExactly) {
  for (const double seconds :
       {0.0, 0.1, 0.001, 1.0, 59.0, 90.0, 600.0, 7200.0, 86400.0, 1e-7, 1.1, 1e17, 123456789.123}) {
    const std::string text = FormatDuration(Seconds(seconds));
    ASSERT_TRUE(ReadDuration(Plain(text)).ok()) << text;
    EXPECT_EQ(ReadDuration(Plain(text))->value, seconds) << text;
  }
  EXPECT_EQ(FormatDuration(Seconds(600)), "10m");
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{1024}, int64_t{16} << 30,
                              int64_t{1234567}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(*ReadSize(Plain(FormatSize(bytes))), bytes);
  }
  EXPECT_EQ(FormatSize(int64_t{16} << 30), "16GiB");
}

TEST(Suggest, CountsSwapsAsOne) {
  EXPECT_EQ(EditDistance("asha", "ahsa"), 1);
  EXPECT_EQ(EditDistance("facter", "factor"), 1);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", "abc"), 0);
}

TEST(Suggest, OnlyWhatIsNear) {
  EXPECT_EQ(Suggest("reduction_facter", {"min", "reduction_factor"}), "reduction_factor");
  EXPECT_EQ(Suggest("zebra", {"min", "max"}), "");
  EXPECT_EQ(Suggest("a", {"b"}), "");
  EXPECT_EQ(Suggest(std::string(100'000, 'a'), {"min"}), "");
}

}  // namespace
}  // namespace attune::sweepfile
