#include "checkpoints/manifest.h"

#include <gmock/gmock.h>

#include "system/sha256.h"

namespace attune::checkpoints {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// SHA-256 of "abc" (FIPS 180-2, appendix B.1).
const std::string kHash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string With(const std::string& name, const std::string& hash = kHash,
                 const std::string& bytes = "3") {
  return R"({"format":"attune-checkpoint/1","step":2,"world_size":1,"files":{")" + name +
         R"(":{"bytes":)" + bytes + R"(,"sha256":")" + hash + R"("}}})";
}

Manifest Read(const std::string& text) {
  return ReadManifest(text, "sha256:" + Sha256::HexOf(text));
}

TEST(Sha256, IsThatOfTheStandard) {
  Sha256 sha;
  sha.Add("a");
  sha.Add("");
  sha.Add("bc");
  EXPECT_EQ(sha.Hex(), kHash);
}

TEST(Manifest, ListsFilesAlsoInFolders) {
  const Manifest manifest = Read(With("state/model.bin"));
  EXPECT_EQ(manifest.error, "");
  EXPECT_THAT(manifest.files, ElementsAre(Pair("state/model.bin", Listed{3, kHash})));
}

TEST(Manifest, ThatIsNotTheCheckpointsIsRefused) {
  EXPECT_THAT(ReadManifest(With("a"), "sha256:" + kHash).error, HasSubstr("its digest is"));
}

TEST(Manifest, ANameThatLeadsOutOfTheFolderIsRefused) {
  for (const char* name : {"../a", "/etc/passwd", "a/../../b", "", ".", "a//b", "manifest.json"}) {
    const Manifest manifest = Read(With(name));
    EXPECT_NE(manifest.error, "") << name;
    EXPECT_THAT(manifest.files, IsEmpty()) << name;
  }
}

TEST(Manifest, SizesThatTogetherAreMoreThanAnyCheckpointHasAreRefused) {
  const std::string max = std::to_string(kFilesBytesMax);
  EXPECT_THAT(Read(With("a", kHash, max)).files,
              ElementsAre(Pair("a", Listed{kFilesBytesMax, kHash})));
  const std::string one_more = std::to_string(kFilesBytesMax + 1);
  EXPECT_THAT(Read(With("a", kHash, one_more)).error, HasSubstr("more than " + max + " bytes"));
  const std::string also = R"("b":{"bytes":1,"sha256":")" + kHash + R"("},"a)";
  EXPECT_THAT(Read(With(also.substr(1), kHash, max)).error,
              HasSubstr("more than " + max + " bytes"));
  for (const char* none : {"-1", "3.5", "1e300"})
    EXPECT_THAT(Read(With("a", kHash, none)).error, HasSubstr("not a manifest")) << none;
}

TEST(Digest, IsTheHashesNameAnd64LowerCaseHexDigits) {
  EXPECT_TRUE(IsDigest("sha256:" + kHash));
  for (const std::string& none : {kHash, "sha256:" + kHash.substr(1), "sha256:" + kHash + "0",
                                  "sha256:" + kHash.substr(1) + "A", std::string("sha256:..")})
    EXPECT_FALSE(IsDigest(none)) << none;
}

TEST(Manifest, WhatIsNoneIsRefused) {
  EXPECT_THAT(Read("{").error, HasSubstr("not a manifest"));
  EXPECT_THAT(Read("[]").error, HasSubstr("not a manifest"));
  EXPECT_THAT(Read(R"({"format":"x"})").error, HasSubstr("its format"));
  EXPECT_THAT(Read(With("a", "ABC")).error, HasSubstr("64 hex digits"));
  EXPECT_THAT(Read(With("a", kHash, "\"many\"")).error, HasSubstr("not a manifest"));
}

}  // namespace
}  // namespace attune::checkpoints
