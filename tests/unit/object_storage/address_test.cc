#include "object_storage/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace attune::object_storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Address Parsed(const std::string& text) {
  const Result<Address> address = ParseAddress(text);
  EXPECT_TRUE(address.ok()) << (address.ok() ? "" : address.error().message);
  return address.ok() ? *address : Address{};
}

std::string Refusal(const std::string& text) {
  const Result<Address> address = ParseAddress(text);
  if (address.ok()) return "accepted";
  EXPECT_EQ(address.error().code, ErrorCode::kInvalid);
  return address.error().message;
}

TEST(ParseAddress, HasAProviderABucketAndAPrefix) {
  EXPECT_EQ(Parsed("s3://bucket/a/b"),
            (Address{.provider = Provider::kS3, .bucket = "bucket", .prefix = "a/b"}));
  EXPECT_EQ(Parsed("gs://bucket_1"),
            (Address{.provider = Provider::kGoogle, .bucket = "bucket_1"}));
  EXPECT_EQ(Parsed("az://container/a/"),
            (Address{.provider = Provider::kAzure, .bucket = "container", .prefix = "a"}));
  EXPECT_EQ(Parsed("file:///data/best/"),
            (Address{.provider = Provider::kFolder, .prefix = "/data/best"}));
}

TEST(ParseAddress, HasSettings) {
  EXPECT_EQ(Parsed("s3://bucket/a?endpoint=https://minio.example:9000&region=eu-1&provider=Minio"),
            (Address{.provider = Provider::kS3,
                     .bucket = "bucket",
                     .prefix = "a",
                     .endpoint = "https://minio.example:9000",
                     .region = "eu-1",
                     .s3_provider = "Minio"}));
  EXPECT_EQ(Parsed("az://container?endpoint=http://127.0.0.1:10000/account").endpoint,
            "http://127.0.0.1:10000/account");
}

TEST(ParseAddress, RefusesOtherSchemes) {
  EXPECT_THAT(Refusal("http://bucket/a"), AllOf(HasSubstr("http://bucket/a"), HasSubstr("s3://")));
  EXPECT_NE(Refusal("/data"), "accepted");
  EXPECT_NE(Refusal(""), "accepted");
}

TEST(ParseAddress, RefusesInvalidBuckets) {
  for (const std::string bucket : {"", "ab", "-bucket", "buc ket", "buc\nket", "bücket"})
    EXPECT_NE(Refusal("s3://" + bucket + "/prefix"), "accepted") << bucket;
  EXPECT_NE(Refusal("s3://" + std::string(223, 'b')), "accepted");
  EXPECT_EQ(Parsed("s3://" + std::string(222, 'b')).bucket.size(), 222u);
}

TEST(ParseAddress, RefusesInvalidPrefixes) {
  for (const std::string prefix : {"a//", "a//b", "../a", "a/./b", "a\nb", "a\xff"})
    EXPECT_NE(Refusal("s3://bucket/" + prefix), "accepted") << prefix;
  EXPECT_NE(Refusal("s3://bucket/" + std::string(513, 'p')), "accepted");
  EXPECT_EQ(Parsed("s3://bucket/" + std::string(512, 'p')).prefix.size(), 512u);
}

TEST(ParseAddress, RefusesInvalidFolders) {
  for (const std::string folder : {"", "data", "host/data", "/", "//", "/.."})
    EXPECT_NE(Refusal("file://" + folder), "accepted") << folder;
  EXPECT_THAT(Refusal("file://data"), HasSubstr("file:///folder"));
}

TEST(ParseAddress, RefusesInvalidSettings) {
  EXPECT_THAT(Refusal("s3://bucket?zone=1"), AllOf(HasSubstr("\"zone\""), HasSubstr("region")));
  for (const std::string setting :
       {"endpoint=minio:9000", "endpoint=", "region=", "region=a b", "provider=\n", "region"})
    EXPECT_NE(Refusal("s3://bucket?" + setting), "accepted") << setting;
  EXPECT_NE(Refusal("gs://bucket?region=eu-1"), "accepted");
  EXPECT_NE(Refusal("file:///data?endpoint=http://a"), "accepted");
}

TEST(ParseAddress, MessagesContainNoCredentials) {
  for (const std::string text : {
           "s3://AKIAX:top/secret@bucket/prefix",
           "s3://AKIAX:top-secret@bucket/prefix",
           "https://AKIAX:top-secret@host/bucket",
           "s3://bucket?secret_access_key=top-secret",
           "s3://bucket?endpoint=https://AKIAX:top-secret@host",
       }) {
    EXPECT_THAT(Refusal(text),
                AllOf(Not(HasSubstr("secret@")), Not(HasSubstr("top")), Not(HasSubstr("AKIAX"))))
        << text;
  }
  EXPECT_THAT(Refusal("s3://key:secret@bucket"), HasSubstr("environment"));
}

TEST(ToString, CanBeParsedAgain) {
  for (const std::string text :
       {"s3://bucket/a/b", "gs://bucket", "az://container/a", "file:///d/e"})
    EXPECT_EQ(ToString(Parsed(text)), text);
  EXPECT_EQ(ToString(Parsed("s3://bucket/a?endpoint=https://host")), "s3://bucket/a");
}

TEST(HasScheme, DistinguishesAddressesFromFolders) {
  EXPECT_TRUE(HasScheme("s3://bucket"));
  EXPECT_TRUE(HasScheme("ftp://host"));
  EXPECT_FALSE(HasScheme("/data/s3://bucket"));
  EXPECT_FALSE(HasScheme("data"));
  EXPECT_FALSE(HasScheme("://"));
}

}  // namespace
}  // namespace attune::object_storage
