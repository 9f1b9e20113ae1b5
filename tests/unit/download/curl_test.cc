#include "download/curl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace attune::download {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(OpenCurl, NamesThePackageOfAMissingLibrary) {
  const Result<Curl> missing = OpenCurl("libcurl-of-nobody.so");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(missing.error().message,
              AllOf(HasSubstr("libcurl-of-nobody.so"), HasSubstr("install libcurl4")));
}

TEST(OpenCurl, RefusesAnotherLibrary) {
  EXPECT_EQ(OpenCurl("libc.so.6").error().code, ErrorCode::kUnavailable);
}

TEST(OpenCurl, UsesTheCertificatesThatTheEnvironmentNames) {
  setenv("SSL_CERT_FILE", "/my/certificates", 1);
  const Result<Curl> curl = OpenCurl("libcurl.so.4");
  unsetenv("SSL_CERT_FILE");
  ASSERT_TRUE(curl.ok()) << curl.error().message;
  EXPECT_EQ(curl->certificates, "/my/certificates");
}

TEST(SharedCurl, IsOpenedOnce) { EXPECT_EQ(SharedCurl().value(), SharedCurl().value()); }

}  // namespace
}  // namespace attune::download
