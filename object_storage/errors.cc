#include "object_storage/errors.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <vector>

#include "base/lines.h"
#include "base/message_limits.h"
#include "base/result.h"
#include "base/utf8.h"

namespace attune::object_storage {
namespace {

// Exit codes of rclone.
constexpr int kFolderNotFound = 3;
constexpr int kFileNotFound = 4;

constexpr size_t kMessageBytesMax = 600;

struct Phrase {
  std::string_view text;
  ErrorCode code;
};

// The first phrase in a message decides. S3, Google and Azure have different codes, and versions of
// rclone write statuses differently. A full quota and throttling may have the status 403.
constexpr std::array kPhrases{
    Phrase{"SlowDown", ErrorCode::kUnavailable},
    Phrase{"TooManyRequests", ErrorCode::kUnavailable},
    Phrase{"ateLimitExceeded", ErrorCode::kUnavailable},  // rateLimit… and userRateLimit…

    Phrase{"QuotaExceeded", ErrorCode::kStorageFull},
    Phrase{"StorageFull", ErrorCode::kStorageFull},
    Phrase{"InsufficientStorage", ErrorCode::kStorageFull},
    Phrase{"tatusCode: 507", ErrorCode::kStorageFull},
    Phrase{"tatus code: 507", ErrorCode::kStorageFull},
    Phrase{"no space left on device", ErrorCode::kStorageFull},
    Phrase{"disk quota exceeded", ErrorCode::kStorageFull},

    Phrase{"NoSuchBucket", ErrorCode::kInvalid},
    Phrase{"bucket does not exist", ErrorCode::kInvalid},
    Phrase{"ContainerNotFound", ErrorCode::kInvalid},
    Phrase{"InvalidBucketName", ErrorCode::kInvalid},
    Phrase{"PermanentRedirect", ErrorCode::kInvalid},
    Phrase{"AuthorizationHeaderMalformed", ErrorCode::kInvalid},  // another region
    Phrase{"LocationConstraint", ErrorCode::kInvalid},
    Phrase{"x509:", ErrorCode::kInvalid},
    Phrase{"HTTP response to HTTPS client", ErrorCode::kInvalid},

    Phrase{"ExpiredToken", ErrorCode::kDenied},
    Phrase{"InvalidAccessKeyId", ErrorCode::kDenied},
    Phrase{"SignatureDoesNotMatch", ErrorCode::kDenied},
    Phrase{"RequestTimeTooSkewed", ErrorCode::kDenied},
    Phrase{"AccessDenied", ErrorCode::kDenied},
    Phrase{"AuthenticationFailed", ErrorCode::kDenied},
    Phrase{"AuthorizationFailure", ErrorCode::kDenied},
    Phrase{"AuthorizationPermissionMismatch", ErrorCode::kDenied},
    Phrase{"invalid_grant", ErrorCode::kDenied},
    Phrase{"tatusCode: 403", ErrorCode::kDenied},
    Phrase{"tatus code: 403", ErrorCode::kDenied},
    Phrase{"RESPONSE 403", ErrorCode::kDenied},
    Phrase{"Error 403", ErrorCode::kDenied},
    Phrase{"tatusCode: 401", ErrorCode::kDenied},
    Phrase{"tatus code: 401", ErrorCode::kDenied},
    Phrase{"RESPONSE 401", ErrorCode::kDenied},
    Phrase{"Error 401", ErrorCode::kDenied},
    Phrase{"NoCredentialProviders", ErrorCode::kDenied},
    Phrase{"no EC2 IMDS role found", ErrorCode::kDenied},
    Phrase{"refresh cached credentials", ErrorCode::kDenied},
    Phrase{"get shared config profile", ErrorCode::kDenied},
    Phrase{"find default credentials", ErrorCode::kDenied},
    Phrase{"DefaultAzureCredential", ErrorCode::kDenied},
    Phrase{"permission denied", ErrorCode::kDenied},
    Phrase{"read-only file system", ErrorCode::kDenied},

    Phrase{"NoSuchKey", ErrorCode::kNotFound},
    Phrase{"BlobNotFound", ErrorCode::kNotFound},
    Phrase{"object not found", ErrorCode::kNotFound},
    Phrase{"directory not found", ErrorCode::kNotFound},
    Phrase{"tatusCode: 404", ErrorCode::kNotFound},
    Phrase{"tatus code: 404", ErrorCode::kNotFound},
};

const Phrase* FindPhrase(std::string_view message) {
  const auto* const found = std::ranges::find_if(
      kPhrases, [&](const Phrase& each) { return message.find(each.text) != message.npos; });
  return found == kPhrases.end() ? nullptr : found;
}

// Whether a line of the log begins a message: "2026/11/29 23:08:24 ERROR : …".
bool HasTime(std::string_view line) {
  constexpr std::string_view kPattern = "0000/00/00 00:00:00 ";
  return line.size() > kPattern.size() &&
         std::ranges::equal(kPattern, line.substr(0, kPattern.size()), [](char pattern, char c) {
           return pattern == '0' ? c >= '0' && c <= '9' : c == pattern;
         });
}

// The messages of a log without their times. Some have several lines, which become one.
std::vector<std::string> Messages(std::string_view log) {
  constexpr size_t kTimeBytes = 20;
  std::vector<std::string> messages;
  for (std::string_view line : SplitLines(log)) {
    if (HasTime(line)) {
      messages.emplace_back(line.substr(kTimeBytes));
    } else if (messages.empty()) {
      messages.emplace_back(line);
    } else {
      while (line.starts_with(' ') || line.starts_with('\t')) line.remove_prefix(1);
      if (!line.empty()) messages.back() += ' ' + std::string(line);
    }
  }
  return messages;
}

std::string WithoutLevel(std::string_view message) {
  for (const std::string_view level : {"ERROR : ", "NOTICE: ", "CRITICAL: "}) {
    if (message.starts_with(level)) message.remove_prefix(level.size());
  }
  return std::string(message);
}

// The last message with a known error, else the last message. It may be a summary.
std::string BestMessage(std::string_view log) {
  const std::vector<std::string> messages = Messages(log);
  for (const std::string& message : messages | std::views::reverse) {
    if (FindPhrase(message) != nullptr) return message;
  }
  return messages.empty() ? "" : messages.back();
}

}  // namespace

ErrorCode CodeOf(std::string_view message, int exit_code) {
  if (const Phrase* const phrase = FindPhrase(message)) return phrase->code;
  return exit_code == kFolderNotFound || exit_code == kFileNotFound ? ErrorCode::kNotFound
                                                                    : ErrorCode::kUnavailable;
}

Error RcloneError(const ProcessEnd& end, const Environment& environment) {
  const std::string message =
      WithoutSecrets(ValidUtf8(WithoutLevel(BestMessage(end.log))), environment);
  if (message.empty())
    return {CodeOf("", end.exit_code), "rclone: exit code " + std::to_string(end.exit_code)};
  return {CodeOf(message, end.exit_code), "rclone: " + CutEnd(message, kMessageBytesMax)};
}

}  // namespace attune::object_storage
