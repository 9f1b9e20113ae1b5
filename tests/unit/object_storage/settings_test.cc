#include "object_storage/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace attune::object_storage {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Environment Of(const std::string& address, const Environment& environment) {
  return RcloneEnvironment(ParseAddress(address).value(), environment, PartSettings{});
}

TEST(IsStoreVariable, KnowsTheVariablesOfEachProvider) {
  for (const char* name :
       {"AWS_ACCESS_KEY_ID", "AZURE_STORAGE_KEY", "GOOGLE_APPLICATION_CREDENTIALS",
        "CLOUDSDK_CONFIG", "RCLONE_S3_STORAGE_CLASS", "RCLONE_GCS_ANONYMOUS",
        "RCLONE_AZUREBLOB_ACCOUNT"})
    EXPECT_TRUE(IsStoreVariable(name)) << name;
  for (const char* name : {"PATH", "WANDB_API_KEY", "MY_AWS_KEY", "RCLONE_CONFIG", "AWS", ""})
    EXPECT_FALSE(IsStoreVariable(name)) << name;
}

TEST(WithVariables, ReplacesVariablesWithTheSameNames) {
  EXPECT_THAT(WithVariables({"HOME=/home/me", "AWS_REGION=own", "AWS_REGION_2=other"},
                            {{"AWS_REGION", "sent"}, {"AWS_PROFILE", "team"}}),
              ::testing::ElementsAre("HOME=/home/me", "AWS_REGION_2=other", "AWS_REGION=sent",
                                     "AWS_PROFILE=team"));
}

TEST(RcloneEnvironment, PassesCredentialsAndDropsOtherOptionsOfRclone) {
  const Environment all =
      Of("s3://bucket", {"AWS_PROFILE=team", "HOME=/home/me", "RCLONE_DRY_RUN=1",
                         "RCLONE_CONFIG=/my/rclone.conf", "RCLONE_S3_STORAGE_CLASS=STANDARD_IA"});
  EXPECT_THAT(all, AllOf(Contains("AWS_PROFILE=team"), Contains("HOME=/home/me"),
                         Contains("RCLONE_S3_STORAGE_CLASS=STANDARD_IA"),
                         Contains("RCLONE_CONFIG=/notfound"),
                         Contains("RCLONE_CONFIG_STORE_ENV_AUTH=true")));
  EXPECT_THAT(all, Not(Contains("RCLONE_DRY_RUN=1")));
  EXPECT_THAT(all, Not(Contains("RCLONE_CONFIG=/my/rclone.conf")));
}

TEST(RcloneEnvironment, TakesEndpointAndRegionOfTheAddressBeforeTheEnvironments) {
  const Environment environment{"AWS_ENDPOINT_URL=https://env", "AWS_REGION=env-1"};
  EXPECT_THAT(Of("s3://bucket", environment),
              AllOf(Contains("RCLONE_CONFIG_STORE_ENDPOINT=https://env"),
                    Contains("RCLONE_CONFIG_STORE_REGION=env-1"),
                    Contains("RCLONE_CONFIG_STORE_PROVIDER=Other")));
  EXPECT_THAT(Of("s3://bucket?endpoint=https://host&region=eu-1&provider=Minio", environment),
              AllOf(Contains("RCLONE_CONFIG_STORE_ENDPOINT=https://host"),
                    Contains("RCLONE_CONFIG_STORE_REGION=eu-1"),
                    Contains("RCLONE_CONFIG_STORE_PROVIDER=Minio")));
  const Environment plain = Of("s3://bucket", {"AWS_ENDPOINT_URL="});
  EXPECT_THAT(plain, Contains("RCLONE_CONFIG_STORE_PROVIDER=AWS"));
  EXPECT_THAT(plain, Not(Contains(StartsWith("RCLONE_CONFIG_STORE_ENDPOINT"))));
}

TEST(RcloneEnvironment, PassesTheCertificatesOfAws) {
  const Environment all = Of("s3://bucket", {"AWS_CA_BUNDLE=/certificates"});
  EXPECT_THAT(all, Contains("RCLONE_CA_CERT=/certificates"));
  EXPECT_THAT(all, Not(Contains(StartsWith("AWS_CA_BUNDLE"))));
  EXPECT_THAT(
      Of("s3://bucket", {"AWS_CA_BUNDLE=/certificates", "RCLONE_CA_CERT=/mine"}),
      AllOf(Contains("RCLONE_CA_CERT=/mine"), Not(Contains("RCLONE_CA_CERT=/certificates"))));
}

TEST(RcloneEnvironment, HasSizesOfParts) {
  const Environment all =
      RcloneEnvironment(ParseAddress("s3://bucket").value(), {},
                        {.from_bytes = 6 << 20, .part_bytes = 5 << 20, .concurrency = 3});
  EXPECT_THAT(all, AllOf(Contains("RCLONE_CONFIG_STORE_UPLOAD_CUTOFF=6291456B"),
                         Contains("RCLONE_CONFIG_STORE_CHUNK_SIZE=5242880B"),
                         Contains("RCLONE_CONFIG_STORE_UPLOAD_CONCURRENCY=3")));
}

TEST(RcloneEnvironment, KnowsAzuresKeysAndSignatures) {
  EXPECT_THAT(
      Of("az://container", {"AZURE_STORAGE_ACCOUNT=me", "AZURE_STORAGE_KEY=key"}),
      AllOf(Contains("RCLONE_CONFIG_STORE_ACCOUNT=me"), Contains("RCLONE_CONFIG_STORE_KEY=key")));
  EXPECT_THAT(
      Of("az://container", {"AZURE_STORAGE_ACCOUNT=me", "AZURE_STORAGE_SAS_TOKEN=?sv=1&sig=2"}),
      Contains(
          "RCLONE_CONFIG_STORE_SAS_URL=https://me.blob.core.windows.net/container?sv=1&sig=2"));
}

TEST(CheckEnvironment, NamesTheMissingAccountOfAzure) {
  const Address address = ParseAddress("az://container").value();
  const Status missing = CheckEnvironment(address, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(missing.error().message, HasSubstr("AZURE_STORAGE_ACCOUNT"));
  EXPECT_TRUE(CheckEnvironment(address, {"AZURE_STORAGE_ACCOUNT=me"}).ok());
}

TEST(RemotePath, IsInsideTheAddress) {
  EXPECT_EQ(RemotePath(ParseAddress("s3://bucket").value(), "a/b"), "store:bucket/a/b/");
  EXPECT_EQ(RemotePath(ParseAddress("s3://bucket/p").value(), "a"), "store:bucket/p/a/");
  EXPECT_EQ(RemotePath(ParseAddress("file:///data").value(), "a"), "store:/data/a/");
}

TEST(WithoutSecrets, HidesValuesOfSecretVariables) {
  const Environment environment{"AWS_SECRET_ACCESS_KEY=top-secret", "AZURE_STORAGE_KEY=other-key",
                                "GOOGLE_APPLICATION_CREDENTIALS=/home/me/key.json",
                                "A_KEY=", "B_KEY=short"};
  EXPECT_EQ(WithoutSecrets("top-secret, other-key top-secret", environment), "***, *** ***");
  EXPECT_EQ(WithoutSecrets("open /home/me/key.json: too short", environment),
            "open /home/me/key.json: too short");
}

TEST(WithoutSecrets, HidesSignaturesInUrls) {
  EXPECT_EQ(WithoutSecrets("Get \"https://host/a?sv=1&sig=abc\": EOF, why? http://b?c", {}),
            "Get \"https://host/a?***\": EOF, why? http://b?***");
}

}  // namespace
}  // namespace attune::object_storage
