#include "executor/gang/channel.h"

#include <gmock/gmock.h>

#include <cmath>

namespace attune::gang {
namespace {

using testing::HasSubstr;

TEST(LineReader, CutsLinesWhereverTheBytesWereCut) {
  LineReader reader;
  reader.Append("one\ntw");
  EXPECT_EQ(reader.Next(), "one");
  EXPECT_FALSE(reader.Next());
  reader.Append("o\n\nthree\n");
  EXPECT_EQ(reader.Next(), "two");
  EXPECT_EQ(reader.Next(), "");
  EXPECT_EQ(reader.Next(), "three");
  EXPECT_FALSE(reader.Next());
}

TEST(LineReader, LineOfTheGreatestLengthIsTaken) {
  LineReader reader;
  reader.Append(std::string(kLineBytesMax, 'x') + "\n");
  EXPECT_EQ(reader.Next()->size(), kLineBytesMax);
}

TEST(LineReader, OneByteMoreIsTooLongEvenWithoutItsNewline) {
  LineReader reader;
  reader.Append(std::string(kLineBytesMax + 1, 'x'));
  EXPECT_FALSE(reader.Next());
  EXPECT_TRUE(reader.is_too_long());
}

TEST(Channel, UnknownFieldsAndTypesAreIgnored) {
  const auto known = ParseMessage(R"({"type":"progress","step":4,"colour":"red"})");
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(std::get<Progress>(known.value()).step, 4);
  const auto unknown = ParseMessage(R"({"type":"telemetry","watts":300})");
  ASSERT_TRUE(unknown.ok());
  EXPECT_TRUE(std::holds_alternative<Unknown>(unknown.value()));
}

TEST(Channel, FieldThatIsMissingOrWrongIsNamed) {
  const auto error = [](const char* line) { return ParseMessage(line).error(); };
  EXPECT_THAT(error(R"({"type":"progress"})"), HasSubstr("'step' must be an integer"));
  EXPECT_THAT(error(R"({"type":"progress","step":1.5})"), HasSubstr("'step' must be an integer"));
  EXPECT_THAT(error(R"({"type":"progress","step":18446744073709551615})"), HasSubstr("'step'"));
  EXPECT_THAT(error(R"({"type":"report","step":1,"seconds":1,"metrics":{"a":"x"}})"),
              HasSubstr("'metrics' must be"));
  EXPECT_THAT(error(R"({"type":"report","step":1,"seconds":1,"metrics":{},"waits":1})"),
              HasSubstr("'waits' must be true or false"));
  EXPECT_THAT(error(R"({"type":"rendezvous","host":"h","port":0})"), HasSubstr("'port'"));
  EXPECT_THAT(error(R"({"type":"checkpoint","step":1,"path":"/p","digest":"md5:1","bytes":1})"),
              HasSubstr("'digest'"));
  EXPECT_THAT(error(R"({"step":1})"), HasSubstr("without a string 'type'"));
  EXPECT_THAT(error("[1, 2]"), HasSubstr("not a JSON object"));
}

TEST(Channel, QuotedLineIsShortAndPrintable) {
  const std::string quoted = ParseMessage(std::string(5000, '\x01')).error();
  EXPECT_LT(quoted.size(), 200u);
  EXPECT_THAT(quoted, HasSubstr("????"));
}

TEST(Channel, NonFiniteConfigurationValuesTravelAsText) {
  EXPECT_EQ(ConfigJson({{"a", -INFINITY}, {"b", NAN}}), "{\"a\":\"-inf\",\"b\":\"nan\"}\n");
}

}  // namespace
}  // namespace attune::gang
