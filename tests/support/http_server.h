#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>

#include "channel/line_reader.h"
#include "system/processes.h"
#include "system/sockets.h"
#include "system/unique_fd.h"

namespace attune::testing {

// Runs http_server.py, which serves a file. Link attune::test_http_server.
class HttpServer {
 public:
  explicit HttpServer(const std::filesystem::path& file) {
    auto [ours, theirs] = std::move(SocketPair(SOCK_STREAM).value());
    pid_ = fork();
    if (pid_ == 0) {
      DieWithParent(getppid());
      dup2(theirs.get(), STDIN_FILENO);
      dup2(theirs.get(), STDOUT_FILENO);
      execl(ATTUNE_PYTHON, ATTUNE_PYTHON, ATTUNE_HTTP_SERVER, file.c_str(), nullptr);
      _exit(127);
    }
    stream_ = std::move(ours);
    port_ = NextLine();
  }
  ~HttpServer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string Url(const std::string& path) const { return "http://127.0.0.1:" + port_ + path; }

  // Waits for the next request and returns "PATH RANGE".
  std::string NextRequest() { return NextLine(); }

  // Sends the other half of a file at /gate.
  void OpenGate() { send(stream_.get(), "\n", 1, MSG_NOSIGNAL); }

  // Whether the test has read all requests.
  bool HasReadAllRequests() {
    char byte;
    return !lines_.Next() && recv(stream_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
  }

 private:
  std::string NextLine() {
    while (true) {
      if (const auto line = lines_.Next()) return std::string(*line);
      pollfd readable{stream_.get(), POLLIN, 0};
      poll(&readable, 1, -1);
      if (!channel::ReceiveSome(stream_.get(), lines_)) return "the server is gone";
    }
  }

  pid_t pid_;
  UniqueFd stream_;
  channel::LineReader lines_;
  std::string port_;
};

}  // namespace attune::testing
