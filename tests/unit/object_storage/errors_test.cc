#include "object_storage/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace attune::object_storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Messages of rclone 1.60 and 1.75.
TEST(CodeOf, KnowsTheMessagesOfEachProvider) {
  const std::vector<std::pair<std::string, ErrorCode>> cases{
      {"Failed to lsjson: error in ListJSON: operation error S3: ListObjects, https response error "
       "StatusCode: 400, RequestID: A, HostID: , api error ExpiredToken: The provided token has "
       "expired.",
       ErrorCode::kDenied},
      {"Failed to copy: AccessDenied: Access Denied\n\tstatus code: 403, request id: A, host id: B",
       ErrorCode::kDenied},
      {"Failed to copy: NoCredentialProviders: no valid providers in chain. Deprecated.",
       ErrorCode::kDenied},
      {"failed to sign request: failed to retrieve credentials: failed to refresh cached "
       "credentials, no EC2 IMDS role found",
       ErrorCode::kDenied},
      {"googleapi: Error 403: me does not have storage.objects.list access, forbidden",
       ErrorCode::kDenied},
      {"-> github.com/Azure/azure-storage-blob-go/azblob.newStorageError: ===== RESPONSE ERROR "
       "(ServiceCode=AuthenticationFailed) =====",
       ErrorCode::kDenied},
      {"Failed to copy: open /storage/a: permission denied", ErrorCode::kDenied},
      {"Failed to copy: NoSuchBucket: The specified bucket does not exist\n\tstatus code: 404",
       ErrorCode::kInvalid},
      {"googleapi: Error 404: The specified bucket does not exist., notFound", ErrorCode::kInvalid},
      {"RESPONSE 404: 404 The specified container does not exist. ERROR CODE: ContainerNotFound",
       ErrorCode::kInvalid},
      {"api error AuthorizationHeaderMalformed: the region 'us-east-1' is wrong; expecting 'eu-1'",
       ErrorCode::kInvalid},
      {"tls: failed to verify certificate: x509: certificate signed by unknown authority",
       ErrorCode::kInvalid},
      {"https response error StatusCode: 403, api error QuotaExceeded: full",
       ErrorCode::kStorageFull},
      {"XMinioStorageFull: Storage backend has reached its minimum free drive threshold",
       ErrorCode::kStorageFull},
      {"Failed to copy: write /storage/a: no space left on device", ErrorCode::kStorageFull},
      {"https response error StatusCode: 404, api error NoSuchKey: no such key",
       ErrorCode::kNotFound},
      {"https response error StatusCode: 503, api error SlowDown: reduce your request rate",
       ErrorCode::kUnavailable},
      {"googleapi: Error 403: too many requests, rateLimitExceeded", ErrorCode::kUnavailable},
      {"dial tcp 10.0.0.1:443: connect: connection refused", ErrorCode::kUnavailable},
      {"dial tcp: lookup s3.nowhere.invalid: no such host", ErrorCode::kUnavailable},
      {"", ErrorCode::kUnavailable},
  };
  for (const auto& [message, code] : cases)
    EXPECT_EQ(Name(CodeOf(message, 1)), Name(code)) << message;
  EXPECT_EQ(CodeOf("", 3), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf("", 4), ErrorCode::kNotFound);
}

TEST(RcloneError, HasTheLastMessageInOneLine) {
  const ProcessEnd end{
      .exit_code = 1,
      .log =
          "2026/11/29 23:08:24 ERROR : a: Failed to copy: EOF\n"
          "2026/11/29 23:08:24 Failed to copy with 3 errors: last error was: AccessDenied: No\n"
          "\tstatus code: 403, request id: A\n"};
  const Error error = RcloneError(end, {});
  EXPECT_EQ(error.code, ErrorCode::kDenied);
  EXPECT_EQ(error.message,
            "rclone: Failed to copy with 3 errors: last error was: AccessDenied: No status code: "
            "403, request id: A");
}

TEST(RcloneError, PrefersAReasonToASummary) {
  const ProcessEnd end{
      .exit_code = 1,
      .log =
          "2026/11/29 23:08:24 ERROR : a: Couldn't delete: api error AccessDenied: No\n"
          "2026/11/29 23:08:24 NOTICE: Failed to delete: failed to delete 1 files\n"};
  const Error error = RcloneError(end, {});
  EXPECT_EQ(error.code, ErrorCode::kDenied);
  EXPECT_EQ(error.message, "rclone: a: Couldn't delete: api error AccessDenied: No");
}

TEST(RcloneError, HasTheLastMessageIfNoneIsKnown) {
  const ProcessEnd end{.exit_code = 1, .log = "cut line\n2026/11/29 23:08:24 one\n\n"};
  EXPECT_EQ(RcloneError(end, {}).message, "rclone: one");
}

TEST(RcloneError, IsShortAndHasNoSecrets) {
  const ProcessEnd end{.exit_code = 1,
                       .log = "Failed to cat: top-secret " + std::string(5000, 'x')};
  const Error error = RcloneError(end, {"AWS_SESSION_TOKEN=top-secret"});
  EXPECT_LT(error.message.size(), 700u);
  EXPECT_THAT(error.message, AllOf(HasSubstr("***"), Not(HasSubstr("top-secret"))));
}

TEST(RcloneError, HasTheExitCodeOfASilentProcess) {
  EXPECT_THAT(RcloneError({.exit_code = 137, .log = {}}, {}).message, HasSubstr("137"));
}

}  // namespace
}  // namespace attune::object_storage
