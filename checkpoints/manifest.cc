#include "checkpoints/manifest.h"

#include <utility>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "json/parse.h"
#include "system/sha256.h"

namespace attune::checkpoints {
namespace {

constexpr std::string_view kManifestFormat = "attune-checkpoint/1";

std::string FindFault(const std::string& name, const FileEntry& entry) {
  if (const std::string fault = NameFault(name); !fault.empty()) return fault;
  if (name == kManifestFile) return "is the manifest itself";
  return IsSha256(entry.sha256) ? "" : "has no SHA-256 of 64 hex digits";
}

Error Malformed(std::string why) { return {ErrorCode::kCorrupt, std::move(why)}; }

Result<Manifest> Read(const nlohmann::json& json) {
  if (const auto format = json.at("format").get<std::string>(); format != kManifestFormat)
    return Malformed("its format \"" + format + "\" is not " + std::string(kManifestFormat));
  Manifest manifest{.step = json.at("step").get<int64_t>(),
                    .world_size = json.at("world_size").get<int>()};
  manifest.time = json.value("time", manifest.step);
  uint64_t bytes_left = kFilesBytesMax;
  for (const auto& [name, file] : json.at("files").items()) {
    // get_ref() throws for negative numbers and fractions; get() would convert them.
    FileEntry entry{file.at("bytes").get_ref<const nlohmann::json::number_unsigned_t&>(),
                    file.at("sha256").get<std::string>()};
    if (const std::string fault = FindFault(name, entry); !fault.empty())
      return Malformed("files: \"" + name + "\" " + fault);
    if (entry.bytes > bytes_left)
      return Malformed("files: up to \"" + name + "\", the files have more than " +
                       std::to_string(kFilesBytesMax) + " bytes");
    bytes_left -= entry.bytes;
    manifest.files.emplace(name, std::move(entry));
  }
  return manifest;
}

}  // namespace

std::string DigestOf(std::string_view manifest) {
  return std::string(kDigestPrefix) + Sha256::HexOf(manifest);
}

std::string ToJson(const Manifest& manifest) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, entry] : manifest.files)
    files[name] = {{"bytes", entry.bytes}, {"sha256", entry.sha256}};
  nlohmann::json json{{"format", kManifestFormat},
                      {"step", manifest.step},
                      {"world_size", manifest.world_size},
                      {"files", std::move(files)}};
  if (manifest.time != manifest.step) json["time"] = manifest.time;
  return json.dump(1) + "\n";
}

Result<Manifest> ReadManifest(std::string_view text, std::string_view digest) {
  if (const std::string found = DigestOf(text); !digest.empty() && found != digest)
    return Malformed("its digest is " + found + " and not " + std::string(digest));
  try {
    return Read(ParseJsonOrThrow<nlohmann::json>(text));
  } catch (const nlohmann::json::exception& error) {
    return Malformed(std::string("it is not a manifest: ") + error.what());
  }
}

}  // namespace attune::checkpoints
