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

// A server's data folder, held by this process alone until it is destroyed: database, token,
// the server's own word, certificate, and the socket that tells clients on this machine where the
// server answers.
class DataFolder {
 public:
  // Makes the folder, its token and the server's word when they are absent. kConflict when another
  // server holds it, kDenied or kStorageFull when it cannot be written.
  static Result<DataFolder> Open(const std::filesystem::path& path);

  DataFolder(DataFolder&&) noexcept = default;
  DataFolder& operator=(DataFolder&&) = delete;
  ~DataFolder() = default;

  // From now on AskServer() finds this server, until Withdraw() or the end of the object. If the
  // file system has no sockets, warns that clients need the address.
  void Announce(const std::string& http_url, const std::string& rpc_target);
  void Withdraw() { socket_.reset(); }

  // The server's key and certificate, `tls.pem`, made when it is absent. kCorrupt when it is not
  // that.
  Result<tls::Identity> Identity() const;

  // The word with which executors join (tls/join.h), in the file `join`. Its token is named `join`
  // in `tokens` and may do nothing else. Creates or replaces that token if the file does not hold
  // it. `fingerprint` is that of the certificate; empty without TLS.
  Result<std::string> JoinWord(const NamedTokens& tokens, const std::string& fingerprint) const;

  std::filesystem::path database() const { return path_ / "attune.db"; }
  const std::filesystem::path& path() const { return path_; }
  const std::string& token() const { return token_; }
  // By which the server knows its storage and its sweeps' files again, whatever its token is.
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
