#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "server/http/http_server.h"

namespace grpc {
class Channel;
}

namespace attune::server {

struct ServerOptions {
  const Algorithms* algorithms = nullptr;  // outlive the server
  std::span<const Asset> assets;           // the web page; outlive the server
  std::filesystem::path data_dir;          // database, token, logs, checkpoints; made when absent
  std::string host = "127.0.0.1";          // of the page and REST
  int http_port = 7070;                    // 0: any free one
  std::optional<HttpServer::Options::Https> https;  // the same for other machines
  std::string rpc_host = "127.0.0.1";               // where executors connect to
  int rpc_port = 7071;                              // 0: any free one
  bool rpc_tls = false;                             // executors must speak TLS
  bool rpc = true;                                  // listen for executors of other processes
  std::chrono::milliseconds lease_ttl{15'000};
  // Where copies of sweeps' best checkpoints outlive executors; empty: nowhere.
  std::filesystem::path storage_path;
};

// A tuning server: the conductor, its store, REST and the executors' service in one process.
//
// Start listens at once, and returns when the log has been read: until then executors keep their
// leases, and HTTP answers how far it is.
//
// Start fails with a message for people when the data folder is held by another server
// (kConflict), its database is newer than this program or damaged (kCorrupt), a port is taken
// (kUnavailable), TLS cannot be spoken with the files of `https` (kInvalid), or the folder cannot
// be written (kDenied, kStorageFull). While it runs, AskServer() (folder/server_socket.h) tells
// clients on this machine where it answers.
class Server {
 public:
  static Result<std::unique_ptr<Server>> Start(const ServerOptions& options);

  // Ends the streams, waits for the last commit and closes the store. Gangs of other processes go
  // on until their lease ends.
  ~Server();

  std::string http_url() const;    // http://127.0.0.1:7070
  std::string https_url() const;   // https://tuner.example.org:7443; empty without HTTPS
  std::string rpc_target() const;  // 127.0.0.1:7071; empty when it does not listen
  std::string token() const;
  std::string join() const;  // what executors join with (tls/join.h), as in DATA-DIR/join
  std::shared_ptr<grpc::Channel> LocalChannel();  // for an executor in this process

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace attune::server
