#include "checkpoints/manifest.h"

#include <utility>

#include "checkpoints/piece.h"
#include "json/parse.h"
#include "system/sha256.h"

namespace attune::checkpoints {
namespace {

constexpr std::string_view kFormat = "attune-checkpoint/1";
constexpr size_t kHexDigits = 64;

bool IsSha256(std::string_view hex) {
  return hex.size() == kHexDigits && hex.find_first_not_of("0123456789abcdef") == hex.npos;
}

std::string FaultOf(const std::string& name, const Listed& listed) {
  if (const std::string fault = NameFault(name); !fault.empty()) return fault;
  if (name == kManifestFile) return "is the manifest itself";
  return IsSha256(listed.sha256) ? "" : "has no SHA-256 of 64 hex digits";
}

}  // namespace

bool IsDigest(std::string_view digest) {
  return digest.starts_with(kDigestPrefix) && IsSha256(digest.substr(kDigestPrefix.size()));
}

Manifest ReadManifest(std::string_view text, std::string_view digest) {
  const std::string found = std::string(kDigestPrefix) + Sha256::HexOf(text);
  if (found != digest)
    return {.error = "its digest is " + found + " and not " + std::string(digest), .files = {}};
  Manifest manifest;
  uint64_t bytes_left = kFilesBytesMax;
  try {
    const auto json = ParseJsonOrThrow<nlohmann::json>(text);
    if (const auto format = json.at("format").get<std::string>(); format != kFormat)
      return {.error = "its format \"" + format + "\" is not " + std::string(kFormat), .files = {}};
    for (const auto& [name, file] : json.at("files").items()) {
      // As it stands: a number below zero or with a fraction would be made another.
      Listed listed{file.at("bytes").get_ref<const nlohmann::json::number_unsigned_t&>(),
                    file.at("sha256").get<std::string>()};
      if (const std::string fault = FaultOf(name, listed); !fault.empty())
        return {.error = "files: \"" + name + "\" " + fault, .files = {}};
      if (listed.bytes > bytes_left)
        return {.error = "files: with \"" + name + "\" they have more than " +
                         std::to_string(kFilesBytesMax) + " bytes",
                .files = {}};
      bytes_left -= listed.bytes;
      manifest.files.emplace(name, std::move(listed));
    }
  } catch (const nlohmann::json::exception& error) {
    return {.error = std::string("it is not a manifest: ") + error.what(), .files = {}};
  }
  return manifest;
}

}  // namespace attune::checkpoints
