#include "channel/line_reader.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include "system/sockets.h"

namespace attune::channel {
namespace {

TEST(LineReader, ReadsLinesFromArbitraryParts) {
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

TEST(LineReader, AcceptsALineOfMaximumLength) {
  LineReader reader;
  reader.Append(std::string(kLineBytesMax, 'x') + "\n");
  EXPECT_EQ(reader.Next()->size(), kLineBytesMax);
}

TEST(LineReader, RefusesOneByteMoreEvenWithoutANewline) {
  LineReader reader;
  reader.Append(std::string(kLineBytesMax + 1, 'x'));
  EXPECT_FALSE(reader.Next());
  EXPECT_TRUE(reader.is_too_long());
}

TEST(LineReader, QuotesALineThatIsTooLongAndReadsNoMore) {
  LineReader reader;
  reader.Append("short\n" + std::string(kLineBytesMax + 1, 'x') + "\nnext\n");
  EXPECT_EQ(reader.Next(), "short");
  EXPECT_FALSE(reader.Next());
  EXPECT_THAT(reader.TooLong(), testing::HasSubstr("1048576 bytes: 'xxx"));
  EXPECT_FALSE(reader.Next());
}

TEST(ReceiveSome, DistinguishesNoBytesFromTheEnd) {
  auto [ours, theirs] = std::move(SocketPair(SOCK_STREAM).value());
  LineReader lines;
  EXPECT_EQ(ReceiveSome(ours.get(), lines), 0u);
  std::string line = "one\n";
  SendSome(theirs.get(), line);
  EXPECT_EQ(ReceiveSome(ours.get(), lines), 4u);
  EXPECT_EQ(lines.Next(), "one");
  theirs.reset();
  EXPECT_EQ(ReceiveSome(ours.get(), lines), std::nullopt);
}

}  // namespace
}  // namespace attune::channel
