#include "slurm/fleet_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <utility>

#include "base/result.h"
#include "json/parse.h"

namespace attune::slurm {
namespace {

using Json = nlohmann::json;

Error SystemError(const std::filesystem::path& file) {
  const int number = errno;
  return {number == ENOSPC || number == EDQUOT ? ErrorCode::kStorageFull : ErrorCode::kDenied,
          "cannot write " + file.string() + ": " + std::strerror(number)};
}

std::string NewId() {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", std::random_device{}());
  return text;
}

}  // namespace

Status WriteWhole(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path temporary = file.string() + ".new";
  const int out = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (out < 0) return SystemError(file);
  const bool written =
      write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(out) == 0;
  const Error error = SystemError(file);
  close(out);
  if (!written || rename(temporary.c_str(), file.c_str()) != 0) {
    unlink(temporary.c_str());
    return written ? SystemError(file) : error;
  }
  const int folder = open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return {};
}

Result<FleetFolder> FleetFolder::Open(const std::filesystem::path& data_dir) {
  FleetFolder folder(std::filesystem::absolute(data_dir).lexically_normal() / "slurm");
  if (Status read = folder.Read(); !read.ok()) return read.error();
  return folder;
}

Result<FleetFolder> FleetFolder::OpenOrBegin(const std::filesystem::path& data_dir) {
  auto opened = Open(data_dir);
  if (opened.ok() || opened.error().code != ErrorCode::kNotFound) return opened;
  FleetFolder folder(std::filesystem::absolute(data_dir).lexically_normal() / "slurm");
  std::error_code error;
  std::filesystem::create_directories(folder.path_, error);
  if (error)
    return Error{ErrorCode::kDenied,
                 "cannot make " + folder.path_.string() + ": " + error.message()};
  if (Status saved = folder.Save({.id = NewId()}); !saved.ok()) return saved.error();
  return folder;
}

FleetFolder::FleetFolder(FleetFolder&& other) noexcept
    : path_(std::move(other.path_)),
      fleet_(std::move(other.fleet_)),
      lock_(std::exchange(other.lock_, -1)) {}

FleetFolder::~FleetFolder() {
  if (lock_ >= 0) close(lock_);
}

Status FleetFolder::Lock() {
  const std::filesystem::path file = path_ / "lock";
  if (lock_ < 0) lock_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) return SystemError(file);
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0)
    return Error{ErrorCode::kConflict, path_.string() +
                                           " is in use by another `attune slurm up`; `attune slurm "
                                           "down` ends it and its pilots"};
  return Read();  // what the one before has written last
}

Status FleetFolder::Read() {
  const std::filesystem::path file = path_ / "fleet.json";
  std::ifstream in(file);
  if (!in)
    return Error{ErrorCode::kNotFound, "no pilots were ever started for " +
                                           path_.parent_path().string() +
                                           ": `attune slurm up` does, or name another data folder "
                                           "with --data-dir"};
  const Json json = ParseJson<Json>(in);
  const auto whole = [](const Json& value) { return value.is_number_integer(); };
  if (!json.is_object() || !json.contains("id") || !json["id"].is_string() ||
      !json.contains("next") || !whole(json["next"]))
    return Error{ErrorCode::kCorrupt,
                 file.string() +
                     " cannot be read. Jobs named attune-…  in `squeue` are its pilots: `scancel` "
                     "them, delete the file, and begin again"};
  fleet_ = {.id = json["id"].get<std::string>(), .next = json["next"].get<int64_t>()};
  if (json.contains("shared") && json["shared"].is_string())
    fleet_.shared = json["shared"].get<std::string>();
  if (json.contains("intents") && json["intents"].is_array()) {
    for (const Json& number : json["intents"])
      if (whole(number)) fleet_.intents.insert(number.get<int64_t>());
  }
  return {};
}

Status FleetFolder::Save(Fleet fleet) {
  const Json json = {{"id", fleet.id},
                     {"next", fleet.next},
                     {"intents", fleet.intents},
                     {"shared", fleet.shared.string()}};
  if (Status written = WriteWhole(path_ / "fleet.json", json.dump() + "\n"); !written.ok())
    return written;
  fleet_ = std::move(fleet);
  return {};
}

Status FleetFolder::AskToEnd() { return WriteWhole(path_ / "down", ""); }

bool FleetFolder::asked_to_end() const { return access((path_ / "down").c_str(), F_OK) == 0; }

void FleetFolder::ForgetAsked() { unlink((path_ / "down").c_str()); }

}  // namespace attune::slurm
