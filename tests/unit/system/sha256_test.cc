#include "system/sha256.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/result.h"
#include "system/hex.h"
#include "tests/support/scratch_folder.h"

namespace attune {
namespace {

// SHA-256 of "abc" (FIPS 180-2, appendix B.1).
constexpr char kHash[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, MatchesTheStandard) {
  Sha256 sha;
  sha.Add("a");
  sha.Add("");
  sha.Add("bc");
  EXPECT_EQ(sha.Hex(), kHash);
  EXPECT_EQ(Sha256::HexOf("abc"), kHash);
}

TEST(Sha256, HashesTheContentsOfAFile) {
  const testing::ScratchFolder folder;
  const std::string text(3 << 20, 'x');
  std::ofstream(folder / "file") << text;
  int ticks = 0;
  EXPECT_EQ(Sha256::HexOfFile(folder / "file", [&] { return ++ticks > 0; }).value(),
            Sha256::HexOf(text));
  EXPECT_GE(ticks, 3);
  EXPECT_FALSE(Sha256::HexOfFile(folder / "absent").ok());
}

TEST(Sha256, StopsReadingAFileWhenTheCallerSaysSo) {
  const testing::ScratchFolder folder;
  std::ofstream(folder / "file") << std::string(3 << 20, 'x');
  int ticks = 0;
  const Result<std::string> hash = Sha256::HexOfFile(folder / "file", [&] { return ++ticks < 2; });
  EXPECT_EQ(hash.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(ticks, 2);
}

TEST(Sha256, AcceptsOnly64LowerCaseHexDigits) {
  const std::string hash = kHash;
  EXPECT_TRUE(IsSha256(hash));
  for (const std::string& none : {hash.substr(1), hash + "0", "A" + hash.substr(1)})
    EXPECT_FALSE(IsSha256(none)) << none;
}

TEST(HmacSha256, MatchesRfc4231) {
  EXPECT_EQ(ToHex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace attune
