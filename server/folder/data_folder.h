#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "server/folder/named_tokens.h"
#include "server/folder/server_socket.h"
#include "system/unique_fd.h"
#include "tls/certificate.h"

namespace attune::server {

// A server's data folder: the database, token, id, certificate, and the socket that tells clients
// on this machine where the server answers. This process holds the folder's lock until the object
// is destroyed.
class DataFolder {
 public:
  // Opens and locks the folder. Creates the folder, the token and the id if they are absent.
  // kConflict: another server holds it. kDenied, kStorageFull: it cannot be written.
  static Result<DataFolder> Open(const std::filesystem::path& path);

  DataFolder(DataFolder&&) noexcept = default;
  DataFolder& operator=(DataFolder&&) = delete;
  ~DataFolder() = default;

  // Makes AskServer() find this server until Withdraw() or the end of the object. If the file
  // system has no sockets, logs a warning that clients need the address.
  void Announce(const std::string& http_url, const std::string& rpc_target);
  void Withdraw() { socket_.reset(); }

  // Reads the server's key and certificate from `tls.pem`, or creates them if the file is absent.
  // kCorrupt if the file has other contents.
  Result<tls::Identity> Identity() const;

  // The word with which executors join (tls/join.h), stored in the file `join`. Its token is named
  // `join` in `tokens` and only allows to join. Creates or replaces that token if the file does not
  // hold it. `fingerprint` is the certificate's; empty: no TLS.
  Result<std::string> JoinWord(const NamedTokens& tokens, const std::string& fingerprint) const;

  std::filesystem::path database() const { return path_ / "attune.db"; }
  const std::filesystem::path& path() const { return path_; }
  const std::string& token() const { return token_; }
  // The server's id. It marks the storage and the files of sweeps as this server's, and does not
  // change with the token.
  const std::string& id() const { return id_; }

 private:
  DataFolder(std::filesystem::path path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  UniqueFd lock_;
  std::unique_ptr<ServerSocket> socket_;  // null: not announced
  std::string token_;
  std::string id_;
};

}  // namespace attune::server
