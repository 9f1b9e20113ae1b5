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

std::string ManifestText(const std::string& name, const std::string& hash = kHash,
                         const std::string& bytes = "3") {
  return R"({"format":"attune-checkpoint/1","step":2,"world_size":1,"files":{")" + name +
         R"(":{"bytes":)" + bytes + R"(,"sha256":")" + hash + R"("}}})";
}

Result<Manifest> Read(const std::string& text) { return ReadManifest(text, DigestOf(text)); }

// The message of a refusal; empty if the text is accepted. All refusals are kCorrupt.
std::string Refusal(const std::string& text) {
  const Result<Manifest> manifest = Read(text);
  if (manifest.ok()) return "";
  EXPECT_EQ(manifest.error().code, ErrorCode::kCorrupt);
  return manifest.error().message;
}

TEST(Manifest, ListsFilesAlsoInFolders) {
  const Manifest manifest = Read(ManifestText("state/model.bin")).value();
  EXPECT_THAT(manifest.files, ElementsAre(Pair("state/model.bin", FileEntry{3, kHash})));
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

TEST(Manifest, UsesTheStepAsTimeByDefault) {
  EXPECT_EQ(Read(ToJson({.step = 9, .time = 9})).value().time, 9);
}

TEST(Manifest, RefusesAManifestWithAnotherDigest) {
  EXPECT_EQ(ReadManifest(ManifestText("a"), "sha256:" + kHash).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(ReadManifest(ManifestText("a"), "").ok()) << "an empty digest is not compared";
}

TEST(Manifest, RefusesNamesOutsideTheFolder) {
  for (const char* name : {"../a", "/etc/passwd", "a/../../b", "", ".", "a//b", "manifest.json"}) {
    EXPECT_NE(Refusal(ManifestText(name)), "") << name;
  }
}

TEST(Manifest, RefusesSizesWhoseSumIsTooLarge) {
  const std::string max = std::to_string(kFilesBytesMax);
  EXPECT_THAT(Read(ManifestText("a", kHash, max)).value().files,
              ElementsAre(Pair("a", FileEntry{kFilesBytesMax, kHash})));
  const std::string too_many = std::to_string(kFilesBytesMax + 1);
  EXPECT_THAT(Refusal(ManifestText("a", kHash, too_many)), HasSubstr(max));
  const std::string also = R"("b":{"bytes":1,"sha256":")" + kHash + R"("},"a)";
  EXPECT_THAT(Refusal(ManifestText(also.substr(1), kHash, max)), HasSubstr(max));
  for (const char* none : {"-1", "3.5", "1e300"})
    EXPECT_NE(Refusal(ManifestText("a", kHash, none)), "") << none;
}

TEST(Digest, IsSha256And64LowerCaseHexDigits) {
  EXPECT_TRUE(IsDigest("sha256:" + kHash));
  for (const std::string& none : {kHash, "sha256:" + kHash.substr(1), "sha256:" + kHash + "0",
                                  "sha256:" + kHash.substr(1) + "A", std::string("sha256:..")})
    EXPECT_FALSE(IsDigest(none)) << none;
}

TEST(Manifest, RefusesTextThatIsNoManifest) {
  EXPECT_NE(Refusal("{"), "");
  EXPECT_NE(Refusal("[]"), "");
  EXPECT_THAT(Refusal(R"({"format":"x"})"), HasSubstr("\"x\""));
  EXPECT_THAT(Refusal(ManifestText("a", "ABC")), HasSubstr("SHA-256"));
  EXPECT_NE(Refusal(ManifestText("a", kHash, "\"many\"")), "");
}

}  // namespace
}  // namespace attune::checkpoints
