#include "server/data_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <spdlog/spdlog.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tls/join.h"

namespace attune::server {
namespace {

constexpr size_t kTokenBytes = 24;

Error SystemError(const std::string& what) {
  const int number = errno;
  const ErrorCode code =
      number == ENOSPC || number == EDQUOT ? ErrorCode::kStorageFull : ErrorCode::kDenied;
  return {code, what + ": " + std::strerror(number)};
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Whole and durable, or not at all; readable by its owner only.
Status WriteFile(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path temporary = path.string() + ".new";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return SystemError("cannot write " + path.string());
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       fsync(file) == 0;
  const Error error = SystemError("cannot write " + path.string());
  close(file);
  if (!written) {
    unlink(temporary.c_str());
    return error;
  }
  if (rename(temporary.c_str(), path.c_str()) != 0)
    return SystemError("cannot write " + path.string());
  const int folder = open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = folder >= 0 && fsync(folder) == 0;
  const Error unsynced = SystemError("cannot sync " + path.parent_path().string());
  if (folder >= 0) close(folder);
  if (!synced) return unsynced;
  return {};
}

std::string RandomToken() {
  std::array<unsigned char, kTokenBytes> bytes{};
  ATTUNE_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

std::string TokenIn(const std::filesystem::path& path) {
  std::string token = ReadFile(path);
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back())) != 0)
    token.pop_back();
  return token;
}

std::string Holder(const std::filesystem::path& folder) {
  const auto running = nlohmann::json::parse(ReadFile(folder / "server.json"), nullptr, false);
  if (!running.is_object()) return "";
  return " (process " + std::to_string(running.value("pid", 0)) + ", " +
         running.value("http", std::string()) + ")";
}

}  // namespace

Result<DataFolder> DataFolder::Open(const std::filesystem::path& given) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(given, error).lexically_normal();
  std::filesystem::create_directories(path, error);
  if (error)
    return Error{
        error == std::errc::no_space_on_device ? ErrorCode::kStorageFull : ErrorCode::kDenied,
        "cannot make the data folder " + path.string() + ": " + error.message() +
            "; give another with --data-dir"};
  const int lock = open((path / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return SystemError("cannot write to the data folder " + path.string());
  DataFolder folder(path, lock);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0)
    return Error{ErrorCode::kConflict, "the data folder " + path.string() +
                                           " is in use by another server" + Holder(path) +
                                           ": stop that one, or give another with --data-dir"};
  const std::filesystem::path token_file = path / "token";
  folder.token_ = TokenIn(token_file);
  if (folder.token_.empty()) {
    folder.token_ = RandomToken();
    if (Status written = WriteFile(token_file, folder.token_ + "\n"); !written.ok())
      return written.error();
  }
  const auto join = tls::ParseJoin(folder.token_);
  if (!join || join->token != folder.token_)
    return Error{ErrorCode::kInvalid, token_file.string() +
                                          " holds no token, which is one word of printable ASCII: "
                                          "write one, or remove the file for a new one"};
  std::error_code ignored;
  if (!std::filesystem::exists(folder.database(), ignored) &&
      std::filesystem::exists(path / "sweeps", ignored))
    spdlog::warn("{} has no database and begins anew; what an earlier one knew of {} is lost",
                 path.string(), (path / "sweeps").string());
  return folder;
}

DataFolder::DataFolder(DataFolder&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      token_(std::move(other.token_)) {}

DataFolder::~DataFolder() {
  if (lock_ < 0) return;
  if (!token_.empty()) unlink((path_ / "server.json").c_str());
  close(lock_);
}

Status DataFolder::Announce(const std::string& http_url, const std::string& rpc_target) {
  const nlohmann::json running = {{"pid", getpid()}, {"http", http_url}, {"rpc", rpc_target}};
  return WriteFile(path_ / "server.json", running.dump() + "\n");
}

Result<tls::Identity> DataFolder::Identity() const {
  const std::filesystem::path file = path_ / "tls.pem";
  if (std::filesystem::exists(file)) {
    auto identity = tls::ParsePem(ReadFile(file));
    if (identity) return *std::move(identity);
    return Error{ErrorCode::kCorrupt,
                 file.string() +
                     " cannot be read, or does not hold a certificate and its key: put the right "
                     "one back, or delete it, and let every executor join with the word that is "
                     "printed then"};
  }
  const auto made = tls::MakeIdentity();
  if (!made) return Error{ErrorCode::kInternal, "OpenSSL cannot make a certificate"};
  if (Status written = WriteFile(file, tls::ToPem(*made)); !written.ok()) return written.error();
  return *made;
}

Status DataFolder::WriteJoin(const std::string& word) const {
  return WriteFile(path_ / "join", word + "\n");
}

}  // namespace attune::server
