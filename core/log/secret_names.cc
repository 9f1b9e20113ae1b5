#include "core/log/secret_names.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace attune {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
constexpr std::string_view kDigits = "0123456789";

// Words between the underscores of a name that suggest a secret.
constexpr std::array<std::string_view, 11> kSecretWords = {
    "APIKEY",   "CREDENTIAL", "CREDENTIALS", "KEY",     "PASSPHRASE", "PASSWD",
    "PASSWORD", "PAT",        "SECRET",      "SECRETS", "TOKEN"};

std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

bool IsLetter(char c) { return kLetters.find(c) != kLetters.npos; }

}  // namespace

bool IsSecretName(std::string_view name) {
  if (name.empty() || name.size() > kSecretNameBytesMax || !IsLetter(name.front())) return false;
  if (name.starts_with(kReservedPrefix)) return false;
  return std::ranges::all_of(name,
                             [](char c) { return IsLetter(c) || kDigits.find(c) != kDigits.npos; });
}

bool LooksLikeSecret(std::string_view name) {
  const std::string upper = UpperCase(name);
  std::string_view rest = upper;
  while (true) {
    const size_t end = std::min(rest.find('_'), rest.size());
    if (std::ranges::find(kSecretWords, rest.substr(0, end)) != kSecretWords.end()) return true;
    if (end == rest.size()) return false;
    rest.remove_prefix(end + 1);
  }
}

std::vector<std::string> SecretWarnings(const Program& program) {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : program.environment) {
    if (!LooksLikeSecret(name)) continue;
    warnings.push_back("env." + name +
                       ": this looks like a secret, and the database keeps its value; run `attune "
                       "secret set " +
                       name + "`, and write `secrets: [" + name + "]` instead");
  }
  return warnings;
}

}  // namespace attune
