#include "object_storage/settings.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>

#include "base/result.h"

namespace attune::object_storage {
namespace {

constexpr std::array<std::string_view, 4> kRcloneVariables{"RCLONE_S3_", "RCLONE_GCS_",
                                                           "RCLONE_AZUREBLOB_", "RCLONE_CA_CERT="};
constexpr std::array<std::string_view, 7> kStoreVariables{
    "AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "RCLONE_S3_", "RCLONE_GCS_", "RCLONE_AZUREBLOB_"};
// rclone 1.60 cannot use this variable. It gets the same file as RCLONE_CA_CERT.
constexpr std::string_view kAwsCertificates = "AWS_CA_BUNDLE";

constexpr size_t kSecretBytesMin = 6;  // shorter values would hide ordinary words
constexpr std::array<std::string_view, 6> kSecretNames{
    "SECRET", "TOKEN", "KEY", "PASSWORD", "CREDENTIALS", "CONNECTION_STRING"};
constexpr std::array<std::string_view, 2> kPathNames{"_FILE", "_APPLICATION_CREDENTIALS"};

std::string_view NameOf(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// The value of the first of the variables that is set and not empty; else an empty text.
std::string FirstValue(const Environment& environment,
                       std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (const std::string& variable : environment) {
      if (NameOf(variable) == name && variable.size() > name.size() + 1)
        return variable.substr(name.size() + 1);
    }
  }
  return "";
}

bool IsSecret(std::string_view variable) {
  const std::string_view name = NameOf(variable);
  return variable.size() >= name.size() + 1 + kSecretBytesMin &&
         std::ranges::none_of(kPathNames, [&](auto end) { return name.ends_with(end); }) &&
         std::ranges::any_of(kSecretNames, [&](auto part) { return name.find(part) != name.npos; });
}

bool IsPassedOn(const std::string& variable) {
  if (NameOf(variable) == kAwsCertificates) return false;
  return !variable.starts_with("RCLONE_") || std::ranges::any_of(kRcloneVariables, [&](auto start) {
    return variable.starts_with(start);
  });
}

// Adds settings of the remote to an environment.
class Remote {
 public:
  explicit Remote(Environment& environment) : environment_(environment) {}

  void Set(std::string_view name, const std::string& value) {
    if (value.empty()) return;
    environment_.push_back("RCLONE_CONFIG_STORE_" + std::string(name) + '=' + value);
  }

 private:
  Environment& environment_;
};

void ConfigureS3(const Address& address, const Environment& environment, Remote& remote) {
  const std::string endpoint =
      address.endpoint.empty()
          ? FirstValue(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
          : address.endpoint;
  const std::string product = endpoint.empty() ? "AWS" : "Other";
  remote.Set("TYPE", "s3");
  remote.Set("ENV_AUTH", "true");
  remote.Set("PROVIDER", address.s3_provider.empty() ? product : address.s3_provider);
  remote.Set("ENDPOINT", endpoint);
  remote.Set("REGION", address.region.empty()
                           ? FirstValue(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"})
                           : address.region);
  // A hash of the whole file needs another reading. Each part has one, and so has the manifest.
  remote.Set("DISABLE_CHECKSUM", "true");
  remote.Set("NO_HEAD", "true");  // a listing checks the sizes
}

void ConfigureGoogle(const Address& address, Remote& remote) {
  remote.Set("TYPE", "google cloud storage");
  remote.Set("ENV_AUTH", "true");
  remote.Set("ENDPOINT", address.endpoint);
  remote.Set("BUCKET_POLICY_ONLY", "true");  // set no permissions of single objects
}

void ConfigureAzure(const Address& address, const Environment& environment, Remote& remote) {
  const std::string account =
      FirstValue(environment, {"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"});
  const std::string key = FirstValue(environment, {"AZURE_STORAGE_KEY"});
  remote.Set("TYPE", "azureblob");
  remote.Set("ENDPOINT", address.endpoint);
  remote.Set("ACCOUNT", account);
  remote.Set("KEY", key);
  const std::string signature = FirstValue(environment, {"AZURE_STORAGE_SAS_TOKEN"});
  // rclone prefers credentials that it finds itself to a key.
  if (key.empty() && signature.empty()) remote.Set("ENV_AUTH", "true");
  if (signature.empty()) return;
  const std::string service =
      address.endpoint.empty() ? "https://" + account + ".blob.core.windows.net" : address.endpoint;
  remote.Set("SAS_URL", service + '/' + address.bucket + '?' +
                            signature.substr(signature.starts_with('?') ? 1 : 0));
}

}  // namespace

bool IsStoreVariable(std::string_view name) {
  return std::ranges::any_of(kStoreVariables,
                             [&](std::string_view start) { return name.starts_with(start); });
}

Environment WithVariables(Environment environment, const Variables& variables) {
  for (const auto& [name, value] : variables) {
    std::erase_if(environment,
                  [&](const std::string& variable) { return NameOf(variable) == name; });
    environment.push_back(name + '=' + value);
  }
  return environment;
}

Environment RcloneEnvironment(const Address& address, const Environment& environment,
                              const PartSettings& parts) {
  Environment all;
  std::ranges::copy_if(environment, std::back_inserter(all), IsPassedOn);
  all.emplace_back("RCLONE_CONFIG=/notfound");  // rclone's name for no file
  if (FirstValue(environment, {"RCLONE_CA_CERT"}).empty()) {
    const std::string certificates = FirstValue(environment, {kAwsCertificates});
    if (!certificates.empty()) all.push_back("RCLONE_CA_CERT=" + certificates);
  }
  Remote remote(all);
  switch (address.provider) {
    case Provider::kS3:
      ConfigureS3(address, environment, remote);
      break;
    case Provider::kGoogle:
      ConfigureGoogle(address, remote);
      break;
    case Provider::kAzure:
      ConfigureAzure(address, environment, remote);
      break;
    case Provider::kFolder:
      remote.Set("TYPE", "local");
      all.emplace_back("RCLONE_INPLACE=true");  // no temporary names, which a crash would leave
      return all;
  }
  // Without these, rclone creates a bucket that is missing, and needs the right to do so.
  remote.Set("NO_CHECK_BUCKET", "true");
  remote.Set("NO_CHECK_CONTAINER", "true");
  remote.Set("CHUNK_SIZE", std::to_string(parts.part_bytes) + 'B');
  remote.Set("UPLOAD_CUTOFF", std::to_string(parts.from_bytes) + 'B');
  remote.Set("UPLOAD_CONCURRENCY", std::to_string(parts.concurrency));
  return all;
}

Status CheckEnvironment(const Address& address, const Environment& environment) {
  if (address.provider != Provider::kAzure) return {};
  const std::string account =
      FirstValue(environment, {"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME",
                               "RCLONE_AZUREBLOB_ACCOUNT", "RCLONE_AZUREBLOB_CONNECTION_STRING"});
  if (!account.empty()) return {};
  return Invalid("the storage address " + ToString(address) +
                 " needs the name of the storage account; set AZURE_STORAGE_ACCOUNT");
}

std::string RemotePath(const Address& address, std::string_view path) {
  std::string remote(kRemote);
  remote += address.bucket;
  for (const std::string_view part : {std::string_view(address.prefix), path}) {
    if (part.empty()) continue;
    if (!remote.ends_with('/') && !remote.ends_with(':') && !part.starts_with('/')) remote += '/';
    remote += part;
  }
  return remote + '/';
}

std::string WithoutSecrets(std::string_view text, const Environment& environment) {
  constexpr std::string_view kShown = "***";
  std::string shown(text);
  const auto replace = [&](size_t at, size_t length) { shown.replace(at, length, kShown); };
  for (const std::string& variable : environment) {
    if (!IsSecret(variable)) continue;
    const std::string_view secret = std::string_view(variable).substr(NameOf(variable).size() + 1);
    for (size_t at = shown.find(secret); at != shown.npos; at = shown.find(secret, at))
      replace(at, secret.size());
  }
  for (size_t url = shown.find("://"); url != shown.npos; url = shown.find("://", url + 1)) {
    const size_t end = std::min(shown.find_first_of("\"' \t\n", url), shown.size());
    const size_t query = shown.find('?', url);
    if (query < end) replace(query + 1, end - query - 1);
  }
  return shown;
}

}  // namespace attune::object_storage
