#include "checkpoints/manifest.h"

#include "attune/error.h"
#include "json/parse.h"

namespace attune::inline sdk::trainable {
namespace {

constexpr std::string_view kFormat = "attune-checkpoint/1";

}  // namespace

std::string ToJson(const Manifest& manifest) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, digest] : manifest.files) {
    files[name] = {{"bytes", digest.bytes}, {"sha256", digest.sha256}};
  }
  nlohmann::json json{{"format", kFormat},
                      {"step", manifest.step},
                      {"world_size", manifest.world_size},
                      {"files", std::move(files)}};
  if (manifest.time != manifest.step) json["time"] = manifest.time;
  return json.dump(1) + "\n";
}

Manifest ParseManifest(std::string_view text, const std::string& where) {
  try {
    const auto json = ParseJsonOrThrow<nlohmann::json>(text);
    if (const auto format = json.at("format").get<std::string>(); format != kFormat) {
      throw Error(where + ": format \"" + format + "\" is not " + std::string(kFormat));
    }
    Manifest manifest{.step = json.at("step").get<std::int64_t>(),
                      .world_size = json.at("world_size").get<int>()};
    manifest.time = json.value("time", manifest.step);
    for (const auto& [name, file] : json.at("files").items()) {
      if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") {
        throw Error(where + ": \"" + name + "\" is no file of the folder");
      }
      manifest.files[name] = {file.at("bytes").get<std::int64_t>(),
                              file.at("sha256").get<std::string>()};
    }
    return manifest;
  } catch (const nlohmann::json::exception& error) {
    throw Error(where + ": not a manifest: " + error.what());
  }
}

}  // namespace attune::inline sdk::trainable
