#include "code/secret_names.h"

#include <algorithm>
#include <array>
#include <string>

namespace attune::code {
namespace {

constexpr std::array<std::string_view, 16> kNames{
    ".env",     ".envrc",     ".netrc",           "_netrc",           ".pypirc", ".npmrc",
    ".pgpass",  ".htpasswd",  ".git-credentials", "credentials.json", "id_rsa",  "id_dsa",
    "id_ecdsa", "id_ed25519", "kubeconfig",       "secrets.yaml"};
constexpr std::array<std::string_view, 9> kEndings{".pem", ".key", ".p12",      ".pfx",    ".kdbx",
                                                   ".jks", ".ppk", ".keystore", ".tfstate"};
// Endings of files like .env.example, which show the names of settings without their values.
constexpr std::array<std::string_view, 4> kExamples{".example", ".sample", ".template", ".dist"};
constexpr std::array<std::string_view, 3> kPaths{".aws/credentials", ".docker/config.json",
                                                 ".kube/config"};

bool EndsWithAny(std::string_view name, const auto& endings) {
  return std::ranges::any_of(endings, [&](std::string_view each) { return name.ends_with(each); });
}

}  // namespace

bool HasSecretName(std::string_view path) {
  std::string lower(path);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const size_t slash = lower.rfind('/');
  const std::string_view name = std::string_view(lower).substr(slash == lower.npos ? 0 : slash + 1);
  if (EndsWithAny(name, kExamples)) return false;
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with(".env.") ||
         EndsWithAny(name, kEndings) || std::ranges::any_of(kPaths, [&](std::string_view each) {
           return lower == each || lower.ends_with('/' + std::string(each));
         });
}

bool HasSecretContents(std::string_view first_bytes) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  constexpr std::string_view kJoin = "sha256:";  // then a fingerprint, a colon and a token
  constexpr size_t kFingerprintDigits = 64;
  if (first_bytes.starts_with(kJoin) &&
      first_bytes.find_first_not_of("0123456789abcdef", kJoin.size()) ==
          kJoin.size() + kFingerprintDigits &&
      first_bytes[kJoin.size() + kFingerprintDigits] == ':')
    return true;
  const size_t begin = first_bytes.find(kBegin);
  if (begin == first_bytes.npos) return false;
  const std::string_view line = first_bytes.substr(begin, first_bytes.find('\n', begin) - begin);
  return line.find("PRIVATE KEY") != line.npos;
}

}  // namespace attune::code
