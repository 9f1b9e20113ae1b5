#include "pilots/fleet_folder.h"

#include <unistd.h>

#include <fstream>
#include <utility>

#include "base/result.h"
#include "json/parse.h"
#include "system/files.h"
#include "system/random_word.h"

namespace attune::pilots {
namespace {

using Json = nlohmann::json;

constexpr size_t kIdBytes = 4;

}  // namespace

FleetFolder::FleetFolder(const std::filesystem::path& data_dir, EngineFacts engine)
    : engine_(std::move(engine)),
      path_(std::filesystem::absolute(data_dir).lexically_normal() / engine_.command) {}

Result<FleetFolder> FleetFolder::Open(const std::filesystem::path& data_dir,
                                      const EngineFacts& engine) {
  FleetFolder folder(data_dir, engine);
  if (Status read = folder.Read(); !read.ok()) return read.error();
  return folder;
}

Result<FleetFolder> FleetFolder::OpenOrCreate(const std::filesystem::path& data_dir,
                                              const EngineFacts& engine) {
  auto opened = Open(data_dir, engine);
  if (opened.ok() || opened.error().code != ErrorCode::kNotFound) return opened;
  FleetFolder folder(data_dir, engine);
  std::error_code error;
  std::filesystem::create_directories(folder.path_, error);
  if (error)
    return Error{ErrorCode::kDenied,
                 "cannot create " + folder.path_.string() + ": " + error.message()};
  if (Status saved = folder.Save({.id = RandomWord(kIdBytes)}); !saved.ok()) return saved.error();
  return folder;
}

Status FleetFolder::Lock() {
  Result<UniqueFd> lock = LockFile(path_ / "lock", kPrivate);
  if (!lock.ok() && lock.error().code == ErrorCode::kConflict)
    return Error{ErrorCode::kConflict, path_.string() + " is in use by another `attune " +
                                           engine_.command + " up`; `attune " + engine_.command +
                                           " down` ends that one and its pilots"};
  if (!lock.ok()) return lock.error();
  lock_ = *std::move(lock);
  return Read();  // a previous manager may have saved a newer state
}

Status FleetFolder::Read() {
  const std::filesystem::path file = path_ / "fleet.json";
  std::ifstream in(file);
  if (!in)
    return Error{ErrorCode::kNotFound, "no pilots were ever started for " +
                                           path_.parent_path().string() +
                                           "; start them with `attune " + engine_.command +
                                           " up`, or name another data folder with --data-dir"};
  const Json json = ParseJson<Json>(in);
  const auto whole = [](const Json& value) { return value.is_number_integer(); };
  if (!json.is_object() || !json.contains("id") || !json["id"].is_string() ||
      !json.contains("next") || !whole(json["next"]))
    return Error{ErrorCode::kCorrupt, file.string() + " is damaged; " + engine_.cleanup +
                                          ", delete the file, and start again"};
  fleet_ = {.id = json["id"].get<std::string>(), .next = json["next"].get<int64_t>()};
  for (const auto& [name, value] : json.items())
    if (name != "id" && value.is_string()) fleet_.settings[name] = value.get<std::string>();
  if (json.contains("intents") && json["intents"].is_array()) {
    for (const Json& number : json["intents"])
      if (whole(number)) fleet_.intents.insert(number.get<int64_t>());
  }
  return {};
}

Status FleetFolder::Save(Fleet fleet) {
  Json json = fleet.settings;
  json.update({{"id", fleet.id}, {"next", fleet.next}, {"intents", fleet.intents}});
  if (Status written = WriteWhole(path_ / "fleet.json", json.dump() + "\n", kPrivate);
      !written.ok())
    return written;
  fleet_ = std::move(fleet);
  return {};
}

Status FleetFolder::RequestStop() { return WriteWhole(path_ / "down", "", kPrivate); }

bool FleetFolder::stop_requested() const { return access((path_ / "down").c_str(), F_OK) == 0; }

void FleetFolder::ClearStopRequest() { unlink((path_ / "down").c_str()); }

}  // namespace attune::pilots
