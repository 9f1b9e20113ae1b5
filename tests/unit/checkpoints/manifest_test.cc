#include "checkpoints/manifest.h"

#include <gmock/gmock.h>

#include "base/result.h"

namespace attune::checkpoints {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// SHA-256 of "abc" (FIPS 180-2, appendix B.1).
const std::string kHash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string With(const std::string& name, const std::string& hash = kHash,
                 const std::string& bytes = "3") {
  return R"({"format":"attune-checkpoint/1","step":2,"world_size":1,"files":{")" + name +
         R"(":{"bytes":)" + bytes + R"(,"sha256":")" + hash + R"("}}})";
}

Result<Manifest> Read(const std::string& text) { return ReadManifest(text, DigestOf(text)); }

// Why the text is refused; all refusals have one code.
std::string Refusal(const std::string& text) {
  const Result<Manifest> manifest = Read(text);
  if (manifest.ok()) return "";
  EXPECT_EQ(manifest.error().code, ErrorCode::kCorrupt);
  return manifest.error().message;
}

TEST(Manifest, ListsFilesAlsoInFolders) {
  const Manifest manifest = Read(With("state/model.bin")).value();
  EXPECT_THAT(manifest.files, ElementsAre(Pair("state/model.bin", Listed{3, kHash})));
}

TEST(Manifest, IsWrittenAndReadBack) {
  const Manifest manifest{
      .step = 9, .time = 900, .world_size = 2, .files = {{"model.bin", {3, kHash}}}};
  const Manifest read = Read(ToJson(manifest)).value();
  EXPECT_EQ(read.step, 9);
  EXPECT_EQ(read.time, 900);
  EXPECT_EQ(read.world_size, 2);
  EXPECT_EQ(read.files, manifest.files);
}

TEST(Manifest, WithoutATimeHasThatOfItsStep) {
  EXPECT_EQ(Read(ToJson({.step = 9, .time = 9})).value().time, 9);
}

TEST(Manifest, ThatIsNotTheCheckpointsIsRefused) {
  EXPECT_EQ(ReadManifest(With("a"), "sha256:" + kHash).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(ReadManifest(With("a"), "").ok()) << "without a digest none is compared";
}

TEST(Manifest, ANameThatLeadsOutOfTheFolderIsRefused) {
  for (const char* name : {"../a", "/etc/passwd", "a/../../b", "", ".", "a//b", "manifest.json"}) {
    EXPECT_NE(Refusal(With(name)), "") << name;
  }
}

TEST(Manifest, SizesThatTogetherAreMoreThanAnyCheckpointHasAreRefused) {
  const std::string max = std::to_string(kFilesBytesMax);
  EXPECT_THAT(Read(With("a", kHash, max)).value().files,
              ElementsAre(Pair("a", Listed{kFilesBytesMax, kHash})));
  const std::string one_more = std::to_string(kFilesBytesMax + 1);
  EXPECT_THAT(Refusal(With("a", kHash, one_more)), HasSubstr("more than " + max + " bytes"));
  const std::string also = R"("b":{"bytes":1,"sha256":")" + kHash + R"("},"a)";
  EXPECT_THAT(Refusal(With(also.substr(1), kHash, max)), HasSubstr("more than " + max + " bytes"));
  for (const char* none : {"-1", "3.5", "1e300"})
    EXPECT_THAT(Refusal(With("a", kHash, none)), HasSubstr("not a manifest")) << none;
}

TEST(Digest, IsTheHashesNameAnd64LowerCaseHexDigits) {
  EXPECT_TRUE(IsDigest("sha256:" + kHash));
  for (const std::string& none : {kHash, "sha256:" + kHash.substr(1), "sha256:" + kHash + "0",
                                  "sha256:" + kHash.substr(1) + "A", std::string("sha256:..")})
    EXPECT_FALSE(IsDigest(none)) << none;
}

TEST(Manifest, WhatIsNoneIsRefused) {
  EXPECT_THAT(Refusal("{"), HasSubstr("not a manifest"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("not a manifest"));
  EXPECT_THAT(Refusal(R"({"format":"x"})"), HasSubstr("its format"));
  EXPECT_THAT(Refusal(With("a", "ABC")), HasSubstr("64 hex digits"));
  EXPECT_THAT(Refusal(With("a", kHash, "\"many\"")), HasSubstr("not a manifest"));
}

}  // namespace
}  // namespace attune::checkpoints
