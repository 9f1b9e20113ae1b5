#include "server/folder/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "system/files.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kValue = "hf_0123456789abcdef";

class SecretsTest : public ::testing::Test {
 protected:
  std::string Masked(std::string text) const {
    secrets_.Mask().value()->Apply(text);
    return text;
  }

  const attune::testing::ScratchFolder folder_;
  const Secrets secrets_{folder_.path()};
};

TEST_F(SecretsTest, AreVisibleAtOnceInOtherProcesses) {
  EXPECT_THAT(secrets_.Names().value(), IsEmpty());
  const Secrets of_another_process(folder_.path());
  for (const char* value : {"one", "two", "six"}) {  // within one tick of the file system's clock
    ASSERT_TRUE(of_another_process.Set("KEY", value).ok());
    EXPECT_EQ(secrets_.Find("KEY").value(), value);
  }
  EXPECT_THAT(secrets_.Names().value(), ElementsAre("KEY"));
  ASSERT_TRUE(of_another_process.Remove("KEY", /*forget=*/false).ok());
  EXPECT_EQ(secrets_.Find("KEY").value(), std::nullopt);
  EXPECT_EQ(of_another_process.Remove("KEY", false).error().code, ErrorCode::kNotFound);
}

TEST_F(SecretsTest, AreInAFileThatOnlyTheOwnerCanRead) {
  ASSERT_TRUE(secrets_.Set("KEY", kValue).ok());
  struct stat status {};
  ASSERT_EQ(stat((folder_ / "secrets.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, kPrivate);
}

TEST_F(SecretsTest, CreateTheDataFolder) {
  const auto folder = folder_ / "new/data";
  ASSERT_TRUE(Secrets(folder).Set("KEY", kValue).ok());
  struct stat status {};
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST_F(SecretsTest, RefuseValuesThatNoVariableCanHold) {
  for (const std::string& value : {std::string(), std::string("a\0b", 3), std::string("\xff\xfe"),
                                   std::string(kSecretBytesMax + 1, 'a')})
    EXPECT_EQ(secrets_.Set("KEY", value).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(secrets_.Set("KEY", std::string(kSecretBytesMax, 'a')).ok());
  EXPECT_TRUE(secrets_.Set("KEY", "-----BEGIN\nabc\n").ok());
}

TEST_F(SecretsTest, StayMaskedAfterTheyWereReplacedOrRemoved) {
  ASSERT_TRUE(secrets_.Set("KEY", kValue).ok());
  ASSERT_TRUE(secrets_.Set("KEY", "another-value").ok());
  EXPECT_EQ(Masked("a " + kValue + " b another-value"), "a ******************* b *************");
  ASSERT_TRUE(secrets_.Remove("KEY", false).ok());
  EXPECT_EQ(Masked(kValue + "another-value"), std::string(kValue.size() + 13, '*'));
  ASSERT_TRUE(secrets_.Remove("KEY", /*forget=*/true).ok());
  EXPECT_EQ(Masked(kValue), kValue);
  EXPECT_EQ(ReadWhole(folder_ / "secrets.json").value().find(kValue), std::string::npos);
}

TEST_F(SecretsTest, ForgetTheOldestFormerValues) {
  std::string former;
  for (size_t i = 0; i < kFormerValuesMax; ++i)
    former += (i == 0 ? "" : ", ") + ("[\"KEY\", \"old-value-" + std::to_string(i) + "\"]");
  std::ofstream(folder_ / "secrets.json")
      << R"({"secrets": {"KEY": "newer-value"}, "former": [)" << former << "]}";
  EXPECT_EQ(Masked("a old-value-0 b"), "a *********** b");
  ASSERT_TRUE(secrets_.Set("KEY", "newest-value").ok());
  EXPECT_EQ(Masked("a old-value-0 b"), "a old-value-0 b");
  EXPECT_EQ(Masked("a old-value-1 newer-value b"), "a *********** *********** b");
}

TEST_F(SecretsTest, StayInUseWhenTheirFileIsDamaged) {
  ASSERT_TRUE(secrets_.Set("KEY", kValue).ok());
  EXPECT_EQ(secrets_.Find("KEY").value(), kValue);
  std::ofstream(folder_ / "secrets.json") << "{";
  EXPECT_EQ(secrets_.Find("KEY").value(), kValue);
  EXPECT_EQ(Masked(kValue), std::string(kValue.size(), '*'));
  EXPECT_EQ(Secrets(folder_.path()).Find("KEY").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Secrets(folder_.path()).Mask().error().code, ErrorCode::kCorrupt);
}

TEST(SecretMask, HidesWholeValuesAndPartsWhereATextIsCut) {
  const SecretMask mask({"12345678", "short"});
  const auto masked = [&](std::string text) {
    mask.Apply(text);
    return text;
  };
  EXPECT_EQ(masked("a12345678b12345678"), "a********b********");
  EXPECT_EQ(masked("short"), "short");
  EXPECT_EQ(masked("1234567"), "*******");
  EXPECT_EQ(masked("x 1234"), "x ****");
  EXPECT_EQ(masked("x 123"), "x 123");
  EXPECT_EQ(masked("5678 x"), "**** x");
  EXPECT_EQ(masked("678 x"), "678 x");
  EXPECT_EQ(masked("a 1234567 b"), "a 1234567 b");
  EXPECT_EQ(masked(""), "");
  EXPECT_EQ(mask.longest_bytes(), 8u);
}

TEST(SecretMask, HidesValuesThatOverlap) {
  const SecretMask mask({"abcabcabc", "bcabcabcd"});
  std::string text = "abcabcabcabcd";
  mask.Apply(text);
  EXPECT_EQ(text, std::string(text.size(), '*'));
}

}  // namespace
}  // namespace attune::server
