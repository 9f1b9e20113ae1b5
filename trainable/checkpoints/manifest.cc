#include "trainable/checkpoints/manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attune/error.h"
#include "trainable/base/sockets.h"

namespace attune::trainable {
namespace {

constexpr std::string_view kFormat = "attune-checkpoint/1";

}  // namespace

std::string ToJson(const Manifest& manifest) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, digest] : manifest.files) {
    files[name] = {{"bytes", digest.bytes}, {"sha256", digest.sha256}};
  }
  return nlohmann::json{{"format", kFormat},
                        {"step", manifest.step},
                        {"world_size", manifest.world_size},
                        {"files", std::move(files)}}
             .dump(1) +
         "\n";
}

Manifest ParseManifest(std::string_view text, const std::string& where) {
  try {
    const auto json = nlohmann::json::parse(text);
    if (const auto format = json.at("format").get<std::string>(); format != kFormat) {
      throw Error(where + ": format \"" + format + "\" is not " + std::string(kFormat));
    }
    Manifest manifest{.step = json.at("step").get<std::int64_t>(),
                      .world_size = json.at("world_size").get<int>()};
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

std::string ReadFile(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream contents;
  contents << in.rdbuf();
  if (!in) throw Error(file.string() + ": cannot be read");
  return std::move(contents).str();
}

void WriteFile(const std::filesystem::path& file, std::string_view contents) {
  const UniqueFd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) ThrowErrno(file.string());
  while (!contents.empty()) {
    const ssize_t written = write(fd.get(), contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowErrno(file.string());
    contents.remove_prefix(written);
  }
}

void SyncPath(const std::filesystem::path& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) ThrowErrno(path.string());
}

}  // namespace attune::trainable
