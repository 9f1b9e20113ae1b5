#include "object_storage/address.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/message_limits.h"
#include "base/result.h"
#include "base/utf8.h"
#include "checkpoints/piece.h"

namespace attune::object_storage {
namespace {

struct Scheme {
  std::string_view prefix;
  Provider provider;
};
constexpr std::array kSchemes{Scheme{"s3://", Provider::kS3}, Scheme{"gs://", Provider::kGoogle},
                              Scheme{"az://", Provider::kAzure},
                              Scheme{"file://", Provider::kFolder}};

constexpr size_t kPrefixBytesMax = 512;  // leaves room in a key, which has at most 1,024 bytes
constexpr size_t kBucketBytesMin = 3;
constexpr size_t kBucketBytesMax = 222;  // Google's limit, which is the largest

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool HasOnly(std::string_view text, std::string_view others) {
  return std::ranges::all_of(
      text, [&](char c) { return IsLetterOrDigit(c) || others.find(c) != others.npos; });
}

// The address without the parts that may hold a secret: a user before `@`, and settings after `?`.
std::string WithoutSecrets(std::string_view text) {
  text = text.substr(0, text.find('?'));
  const size_t host = text.find("://");
  if (host == text.npos) return CutEnd(ValidUtf8(text), kPlaceBytesMax);
  const size_t user_end = text.rfind('@');  // a secret key may contain slashes
  std::string shown(text.substr(0, host + 3));
  shown += text.substr(user_end == text.npos ? host + 3 : std::max(host + 3, user_end + 1));
  return CutEnd(ValidUtf8(shown), kPlaceBytesMax);
}

// The functions below return the fault of a part as the end of a message; empty: none.

std::string BucketFault(std::string_view bucket) {
  if (bucket.find_first_of("@:") != bucket.npos)
    return "contains credentials; pass them in the environment (AWS_ACCESS_KEY_ID and "
           "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE)";
  if (bucket.empty()) return "names no bucket; write one after the scheme: s3://bucket/prefix";
  if (bucket.size() < kBucketBytesMin || bucket.size() > kBucketBytesMax ||
      !HasOnly(bucket, "._-") || !IsLetterOrDigit(bucket.front()))
    return "has an invalid bucket; its name has 3 to 222 letters, digits, `.`, `_` and `-`";
  return "";
}

std::string PrefixFault(std::string_view prefix) {
  if (prefix.empty()) return "";
  if (prefix.size() > kPrefixBytesMax)
    return "has a prefix of more than " + std::to_string(kPrefixBytesMax) + " bytes; shorten it";
  if (!IsUtf8(prefix) || HasControlCharacters(prefix))
    return "has a prefix with control characters or invalid UTF-8; choose another prefix";
  if (!checkpoints::NameFault(prefix).empty())
    return "has a prefix with an empty part, `.` or `..`; remove that part";
  return "";
}

std::string EndpointFault(std::string_view url) {
  const bool has_scheme = url.starts_with("http://") || url.starts_with("https://");
  if (has_scheme && url.size() > 8 && HasOnly(url, ".-_:/[]")) return "";
  return "has an invalid endpoint; write a URL without credentials, such as "
         "endpoint=https://minio.example:9000";
}

// Reads the settings after `?`.
std::string SettingsFault(std::string_view settings, Address& address) {
  while (!settings.empty()) {
    const std::string_view setting = settings.substr(0, settings.find('&'));
    settings.remove_prefix(std::min(settings.size(), setting.size() + 1));
    const std::string_view name = setting.substr(0, setting.find('='));
    const std::string_view value = setting.substr(std::min(setting.size(), name.size() + 1));
    const bool is_s3 = address.provider == Provider::kS3;
    if (name == "endpoint" && address.provider != Provider::kFolder) {
      if (std::string fault = EndpointFault(value); !fault.empty()) return fault;
      address.endpoint = value;
    } else if (is_s3 && (name == "region" || name == "provider")) {
      if (value.empty() || !HasOnly(value, "-_"))
        return "has an invalid " + std::string(name) + "; use letters, digits, `-` and `_`";
      (name == "region" ? address.region : address.s3_provider) = value;
    } else {
      const std::string shown = CutEnd(ValidUtf8(name), 64);
      return "has an unknown setting \"" + shown +
             "\"; s3:// has endpoint, region and provider, gs:// and az:// have endpoint. Pass "
             "credentials in the environment";
    }
  }
  return "";
}

std::string FolderFault(std::string_view path, Address& address) {
  if (!path.starts_with('/')) return "needs an absolute path: file:///folder";
  if (!IsUtf8(path) || HasControlCharacters(path))
    return "has a path with control characters or invalid UTF-8; choose another folder";
  const std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  address.prefix = folder.has_filename() ? folder : folder.parent_path();
  return folder.relative_path().empty() ? "is the root of the file system; name a folder in it"
                                        : "";
}

std::string BucketPathFault(std::string_view path, Address& address) {
  const std::string_view bucket = path.substr(0, path.find('/'));
  std::string_view prefix = path.substr(std::min(path.size(), bucket.size() + 1));
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  address.bucket = bucket;
  address.prefix = prefix;
  const std::string fault = BucketFault(bucket);
  return fault.empty() ? PrefixFault(prefix) : fault;
}

}  // namespace

bool HasScheme(std::string_view text) {
  const size_t end = text.find("://");
  return end != text.npos && end > 0 && HasOnly(text.substr(0, end), "+-.");
}

Result<Address> ParseAddress(std::string_view text) {
  const auto invalid = [&](const std::string& fault) {
    return Invalid("the storage address " + WithoutSecrets(text) + " " + fault);
  };
  const auto* const scheme = std::ranges::find_if(
      kSchemes, [&](const Scheme& each) { return text.starts_with(each.prefix); });
  if (scheme == kSchemes.end())
    return invalid("has no known scheme; use s3://, gs://, az:// or file://");
  Address address{.provider = scheme->provider};
  const size_t query = text.find('?');
  const std::string_view path = text.substr(0, query).substr(scheme->prefix.size());
  std::string fault = address.provider == Provider::kFolder ? FolderFault(path, address)
                                                            : BucketPathFault(path, address);
  if (fault.empty() && query != text.npos) fault = SettingsFault(text.substr(query + 1), address);
  if (!fault.empty()) return invalid(fault);
  return address;
}

std::string ToString(const Address& address) {
  const auto* const scheme = std::ranges::find(kSchemes, address.provider, &Scheme::provider);
  std::string text(scheme->prefix);
  text += address.bucket;
  if (!address.bucket.empty() && !address.prefix.empty()) text += '/';
  return text + address.prefix;
}

}  // namespace attune::object_storage
