#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "code/manifest.h"
#include "core/algorithms/algorithms.h"
#include "core/base/ids.h"
#include "server/http/http_server.h"

namespace grpc {
class Channel;
}

namespace attune::server {

struct ServerOptions {
  const Algorithms* algorithms = nullptr;  // outlive the server
  std::span<const Asset> assets;           // the dashboard; outlive the server
  std::filesystem::path data_dir;          // database, token, logs, checkpoints; created if absent
  std::string host = "127.0.0.1";          // of the dashboard and REST
  int http_port = 7070;                    // 0: any free port
  std::optional<HttpServer::Options::Https> https;  // HTTPS for other machines
  std::string rpc_host = "127.0.0.1";               // the address to which executors connect
  int rpc_port = 7071;                              // 0: any free port
  bool rpc_tls = false;                             // executors must use TLS
  bool rpc = true;                                  // listen for executors of other processes
  std::chrono::milliseconds lease_ttl{15'000};
  // The folder for copies of the best checkpoints, which outlive executors; empty: no copies.
  std::filesystem::path storage_path;
  // The address of the object store for sweeps that name none (object_storage/address.h); empty:
  // they use none.
  std::string storage_address;
  uint64_t storage_bytes_per_second_max = 0;         // to object stores, of each host; 0: no limit
  uint64_t code_bytes_max = code::kDefaultBytesMax;  // of a snapshot of code
  std::optional<GpuHourPrice> gpu_hour_price;        // nullopt: costs have no money
};

// A tuning server: the conductor, its store, REST and the executors' service in one process.
//
// Start listens at once, and returns when it has read the log. Until then executors keep their
// leases, and HTTP answers with the progress.
//
// Start fails with a message for people: kConflict: another server holds the data folder or the
// storage. kCorrupt: the database is damaged or newer than this program. kUnavailable: a port is
// taken, or object storage needs rclone. kInvalid: the files of `https` do not work, or the address
// of the object store is not valid. kDenied, kStorageFull: the folder cannot be
// written. While the server runs, AskServer() (folder/server_socket.h) tells clients on this
// machine where it answers.
class Server {
 public:
  static Result<std::unique_ptr<Server>> Start(const ServerOptions& options);

  // Ends the streams, waits for the last commit and closes the store. Gangs of other processes
  // continue until their lease ends.
  ~Server();

  // Waits until the object store of a sweep that has ended has all of its files. Returns at once if
  // the sweep uses none. kUnavailable: a store fails, or `stop` was requested; this server, or the
  // next one on the data folder, tries again.
  Status WaitForStorage(SweepId sweep, const std::stop_token& stop);

  std::string http_url() const;    // http://127.0.0.1:7070
  std::string https_url() const;   // https://tuner.example.org:7443; empty without HTTPS
  std::string rpc_target() const;  // 127.0.0.1:7071; empty if it does not listen
  std::string token() const;
  std::string join() const;  // the word with which executors join (tls/join.h), as in DATA-DIR/join
  std::shared_ptr<grpc::Channel> LocalChannel();  // for an executor in this process

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace attune::server
