#include "checkpoints/manifest.h"

#include <utility>

#include "base/result.h"
#include "checkpoints/piece.h"
#include "json/parse.h"
#include "system/sha256.h"

namespace attune::checkpoints {
namespace {

constexpr std::string_view kManifestFormat = "attune-checkpoint/1";

std::string FaultOf(const std::string& name, const Listed& listed) {
  if (const std::string fault = NameFault(name); !fault.empty()) return fault;
  if (name == kManifestFile) return "is the manifest itself";
  return IsSha256(listed.sha256) ? "" : "has no SHA-256 of 64 hex digits";
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
    // The exact number: get() would convert one below zero or with a fraction.
    Listed listed{file.at("bytes").get_ref<const nlohmann::json::number_unsigned_t&>(),
                  file.at("sha256").get<std::string>()};
    if (const std::string fault = FaultOf(name, listed); !fault.empty())
      return Malformed("files: \"" + name + "\" " + fault);
    if (listed.bytes > bytes_left)
      return Malformed("files: with \"" + name + "\" they have more than " +
                       std::to_string(kFilesBytesMax) + " bytes");
    bytes_left -= listed.bytes;
    manifest.files.emplace(name, std::move(listed));
  }
  return manifest;
}

}  // namespace

std::string DigestOf(std::string_view manifest) {
  return std::string(kDigestPrefix) + Sha256::HexOf(manifest);
}

std::string ToJson(const Manifest& manifest) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, listed] : manifest.files)
    files[name] = {{"bytes", listed.bytes}, {"sha256", listed.sha256}};
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
