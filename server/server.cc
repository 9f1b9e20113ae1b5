#include "server/server.h"

#include <grpcpp/channel.h>

#include <utility>

#include "server/conductor/conductor.h"
#include "server/data_folder.h"
#include "server/http/http_server.h"
#include "server/rpc/executor_service.h"
#include "server/rpc/rpc_server.h"
#include "server/server_backend.h"
#include "server/store/reader.h"
#include "server/store/sqlite_store.h"

namespace attune::server {
namespace {

std::string Address(const std::string& host, int port) {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" +
         std::to_string(port);
}

}  // namespace

// In the order of construction; a part uses those above it.
struct Server::Parts {
  Parts(DataFolder opened, std::unique_ptr<SqliteStore> events, std::unique_ptr<Reader> rows,
        const ServerOptions& options)
      : folder(std::move(opened)),
        store(std::move(events)),
        reader(std::move(rows)),
        conductor(*options.algorithms, *store, SteadyClock()),
        executors(conductor, {.token = folder.token(), .lease_ttl = options.lease_ttl}),
        backend(conductor, executors, *reader),
        host(options.host) {}

  // No callback of the conductor and no request may meet a part that is gone.
  ~Parts() {
    conductor.Stop();
    http.reset();
    rpc.reset();
  }

  Status Start(const ServerOptions& options) {
    if (Status replayed = conductor.Start(); !replayed.ok()) return replayed;
    auto rpc_started = RpcServer::Start(executors, {.listen = options.rpc,
                                                    .host = options.host,
                                                    .port = options.rpc_port,
                                                    .lease_ttl = options.lease_ttl});
    if (!rpc_started.ok()) return rpc_started.error();
    rpc = std::move(rpc_started).value();
    auto http_started = HttpServer::Start({.host = options.host,
                                           .port = options.http_port,
                                           .token = folder.token(),
                                           .version = ATTUNE_VERSION,
                                           .backend = &backend,
                                           .reader = reader.get(),
                                           .algorithms = options.algorithms,
                                           .assets = options.assets,
                                           .program_exists = {}});
    if (!http_started.ok()) return http_started.error();
    http = std::move(http_started).value();
    return folder.Announce("http://" + Address(host, http->port()),
                           options.rpc ? Address(host, rpc->port()) : "");
  }

  DataFolder folder;
  std::unique_ptr<SqliteStore> store;
  std::unique_ptr<Reader> reader;
  Conductor conductor;
  ExecutorService executors;
  ServerBackend backend;
  std::unique_ptr<RpcServer> rpc;
  std::unique_ptr<HttpServer> http;
  const std::string host;
};

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  ATTUNE_CHECK(options.algorithms != nullptr);
  auto folder = DataFolder::Open(options.data_dir);
  if (!folder.ok()) return folder.error();
  auto store = SqliteStore::Open(folder->database());
  if (!store.ok()) return store.error();
  auto reader = Reader::Open(folder->database());
  if (!reader.ok()) return reader.error();
  auto parts = std::make_unique<Parts>(std::move(folder).value(), std::move(store).value(),
                                       std::move(reader).value(), options);
  if (Status started = parts->Start(options); !started.ok()) return started.error();
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Server::~Server() = default;

std::string Server::http_url() const {
  return "http://" + Address(parts_->host, parts_->http->port());
}

std::string Server::rpc_target() const {
  return parts_->rpc->port() == 0 ? "" : Address(parts_->host, parts_->rpc->port());
}

std::string Server::token() const { return parts_->folder.token(); }

std::shared_ptr<grpc::Channel> Server::LocalChannel() { return parts_->rpc->LocalChannel(); }

}  // namespace attune::server
