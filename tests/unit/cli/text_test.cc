#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

using ::testing::ElementsAre;

TEST(JoinWithCommas, TakesTextsAndNumbers) {
  EXPECT_EQ(JoinWithCommas(std::vector<std::string>{}), "");
  EXPECT_EQ(JoinWithCommas(std::vector<std::string>{"a", "b"}), "a, b");
  EXPECT_EQ(JoinWithCommas(std::vector<int64_t>{1, 3, 9}), "1, 3, 9");
}

TEST(FormatNumber, KeepsFourSignificantDigits) {
  EXPECT_EQ(FormatNumber(0.871312), "0.8713");
  EXPECT_EQ(FormatNumber(0.1), "0.1");
  EXPECT_EQ(FormatNumber(1.23456e-5), "1.235e-05");
  EXPECT_EQ(FormatNumber(-3.0), "-3");
  EXPECT_EQ(FormatNumber(-0.0), "0");
  EXPECT_EQ(FormatNumber(12345.6), "12346");
  EXPECT_EQ(FormatNumber(123456789.0), "1.235e+08");
}

TEST(FormatNumber, NamesWhatIsNoNumber) {
  EXPECT_EQ(FormatNumber(std::nan("")), "nan");
  EXPECT_EQ(FormatNumber(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(FormatDuration, UsesTwoUnits) {
  EXPECT_EQ(FormatDuration(0.85), "850ms");
  EXPECT_EQ(FormatDuration(12.34), "12.3s");
  EXPECT_EQ(FormatDuration(59.96), "1m00s");
  EXPECT_EQ(FormatDuration(245), "4m05s");
  EXPECT_EQ(FormatDuration(11400), "3h10m");
  EXPECT_EQ(FormatDuration(187200), "2d04h");
}

TEST(FormatDuration, ClockThatWentBackIsZero) { EXPECT_EQ(FormatDuration(-3), "0ms"); }

TEST(FormatPercent, RoundsToAWholeNumber) {
  EXPECT_EQ(FormatPercent(0.125), "13%");
  EXPECT_EQ(FormatPercent(1), "100%");
}

TEST(FormatHundredths, HasTwoDigitsAfterThePoint) {
  EXPECT_EQ(FormatHundredths(12.5), "12.50");
  EXPECT_EQ(FormatHundredths(1e300).size(), 63u) << "cut";
}

TEST(FormatBytes, UsesBinaryUnits) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(431232), "421 KiB");
  EXPECT_EQ(FormatBytes(1.5 * 1024 * 1024 * 1024), "1.5 GiB");
}

TEST(FormatConfigBriefly, KeepsTheOrderAndShortensReals) {
  const Json config = {{"lr", 0.0123456}, {"width", 32}, {"optimizer", "sgd"}, {"nesterov", true}};
  EXPECT_EQ(FormatConfigBriefly(config), "lr=0.01235 width=32 optimizer=sgd nesterov=true");
}

TEST(FormatSetting, KeepsFullPrecision) {
  EXPECT_EQ(FormatSetting(0.012345678901234), "0.012345678901234");
  EXPECT_EQ(FormatSetting("sgd"), "sgd");
}

TEST(ParseDuration, WantsAUnit) {
  EXPECT_EQ(ParseDuration("90s"), 90);
  EXPECT_EQ(ParseDuration("1.5h"), 5400);
  EXPECT_EQ(ParseDuration("90"), std::nullopt);
  EXPECT_EQ(ParseDuration("-1s"), std::nullopt);
  EXPECT_EQ(ParseDuration("fast"), std::nullopt);
}

TEST(ParseBytes, WantsAUnit) {
  EXPECT_EQ(ParseBytes("16GiB"), int64_t{16} << 30);
  EXPECT_EQ(ParseBytes("50MB"), 50'000'000);
  EXPECT_EQ(ParseBytes("16G"), std::nullopt);
  EXPECT_EQ(ParseBytes("16"), std::nullopt);
}

TEST(ParseTime, ReadsWhatTheServerWrites) {
  EXPECT_EQ(ParseTime("1970-01-02T00:00:01.500000Z"), 86401.5);
  EXPECT_EQ(ParseTime("yesterday"), std::nullopt);
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("loss"), 4);
  EXPECT_EQ(DisplayWidth("Δbest"), 5);
  EXPECT_EQ(DisplayWidth("学習率"), 6);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1);
  EXPECT_EQ(DisplayWidth("\x1b[31mred\x1b[0m"), 3);
}

TEST(Clip, EndsInAnEllipsisAndClosesColours) {
  EXPECT_EQ(Clip("accuracy", 8), "accuracy");
  EXPECT_EQ(Clip("accuracy", 5), "accu…");
  EXPECT_EQ(Clip("\x1b[31maccuracy\x1b[0m", 3), "\x1b[31mac…\x1b[0m");
  EXPECT_EQ(Clip("学習率", 4), "学…");
  EXPECT_EQ(Clip("accuracy", 0), "");
}

TEST(Clean, DisarmsControlCharacters) {
  EXPECT_EQ(Clean("a\x1b[2Jb\nc"), "a [2Jb c");
  EXPECT_EQ(Clean("\xc2\x9b"
                  "31m"),
            " 31m");
  EXPECT_EQ(Clean("\xff"), "?");
  EXPECT_EQ(Clean("größe"), "größe");
}

TEST(Bar, FillsInEighths) {
  EXPECT_EQ(Bar(0, 4), "░░░░");
  EXPECT_EQ(Bar(0.5, 4), "██░░");
  EXPECT_EQ(Bar(3.0 / 8, 4), "█▌░░");
  EXPECT_EQ(Bar(7, 2), "██");
  EXPECT_EQ(Bar(std::nan(""), 2), "░░");
}

TEST(Table, AlignsNumbersRightAndClipsTheLastColumn) {
  Table table({{"TRIAL", true}, {"STATE"}, {"WHY"}});
  table.Add({"3", "completed", "the end"});
  table.Add({"17", "stopped", "accuracy is rank 9 of 11"});

  EXPECT_THAT(table.Lines(Style(false), 30),
              ElementsAre("TRIAL  STATE      WHY",  //
                          "    3  completed  the end", "   17  stopped    accuracy is…"));
}

TEST(Table, NeverExceedsTheTerminal) {
  Table table({{"A VERY LONG TITLE"}, {"ANOTHER"}});
  table.Add({"x", "y"});
  for (const std::string& line : table.Lines(Style(false), 12)) {
    EXPECT_LE(DisplayWidth(line), 12) << line;
  }
}

TEST(Table, ColoursDoNotMoveColumns) {
  Table table({{"STATE"}, {"N", true}});
  table.Add({{"failed", Colour::kRed}, "1"});
  const std::vector<std::string> plain = table.Lines(Style(false), 0);
  const std::vector<std::string> coloured = table.Lines(Style(true), 0);

  EXPECT_EQ(coloured[1], "\x1b[31mfailed\x1b[0m  1");
  EXPECT_EQ(DisplayWidth(coloured[1]), DisplayWidth(plain[1]));
}

}  // namespace
}  // namespace attune::cli
