#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::server {

// The addresses at which the server of a data folder answers.
struct ServerAddress {
  pid_t pid = 0;
  std::string http;  // http://127.0.0.1:7070
  std::string rpc;   // 127.0.0.1:7071; empty: it does not listen for executors

  bool operator==(const ServerAddress&) const = default;
};

// Tells programs of this user where the server of a data folder answers. They ask at
// DATA-DIR/server.sock before each connection. A file with the address would outlive a killed
// server and then lead to another program that took the port.
class ServerSocket {
 public:
  // Answers until it is destroyed. Errors: see SystemError().
  static Result<std::unique_ptr<ServerSocket>> Open(const std::filesystem::path& data_dir,
                                                    const ServerAddress& address);
  ~ServerSocket();

 private:
  ServerSocket(std::filesystem::path path, UniqueFd listener, std::string answer);
  void Answer();

  const std::filesystem::path path_;
  const UniqueFd listener_;
  const std::string answer_;
  std::thread thread_;
};

// Asks the server that runs on a data folder. kUnavailable if none answers. kDenied if the socket
// belongs neither to this user nor to the folder's owner.
Result<ServerAddress> AskServer(const std::filesystem::path& data_dir);

}  // namespace attune::server
