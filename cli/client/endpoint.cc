#include "cli/client/endpoint.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/result.h"
#include "server/folder/server_socket.h"

namespace attune::cli {
namespace {

Error NoServer(const std::filesystem::path& data_dir) {
  const std::string folder = data_dir.string();
  return {ErrorCode::kUnavailable, "no server runs on " + folder +
                                       "\nstart one with `attune serve --data-dir " + folder +
                                       "`, or choose another with --server URL or --data-dir DIR"};
}

Result<std::string> RunningUrl(const std::filesystem::path& data_dir) {
  std::error_code lost;
  const std::filesystem::path absolute = std::filesystem::absolute(data_dir, lost);
  if (lost)
    return Error{ErrorCode::kInternal,
                 "the working directory is not accessible (" + lost.message() +
                     "); change to another one, or pass an absolute --data-dir"};
  const Result<server::ServerAddress> running = server::AskServer(absolute);
  if (running.ok()) return NormaliseUrl(running->http);
  return running.error().code == ErrorCode::kUnavailable ? NoServer(data_dir) : running.error();
}

}  // namespace

Result<std::string> ReadToken(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string token;
  if (!stream || !std::getline(stream, token)) {
    return Error{ErrorCode::kDenied,
                 "cannot read a token from " + file.string() + ": " +
                     (stream ? std::string("it is empty") : std::string(std::strerror(errno)))};
  }
  token.erase(token.find_last_not_of(" \t\r") + 1);
  return token;
}

Result<std::string> NormaliseUrl(std::string_view address) {
  std::string url(address);
  const bool has_scheme = url.find("://") != std::string::npos;
  if (!has_scheme) url = "http://" + (url.starts_with(':') ? "127.0.0.1" + url : url);
  while (url.ends_with('/')) url.pop_back();
  const bool is_http = url.starts_with("http://") || url.starts_with("https://");
  const std::string_view rest = std::string_view(url).substr(url.find("://") + 3);
  if (!is_http || rest.empty() || rest.find('/') != std::string_view::npos) {
    return Error{ErrorCode::kInvalid, "`" + std::string(address) +
                                          "` is not a server's address; write HOST:PORT, "
                                          "http://HOST:PORT or https://HOST:PORT"};
  }
  return url;
}

Result<Endpoint> FindServer(const ServerChoice& choice) {
  Endpoint endpoint;
  const Result<std::string> running = RunningUrl(choice.data_dir);
  if (choice.server.empty()) {
    if (!running.ok()) return running.error();
    endpoint.url = *running;
    endpoint.source = choice.data_dir.string();
    endpoint.data_dir = choice.data_dir;
  } else {
    Result<std::string> url = NormaliseUrl(choice.server);
    if (!url.ok()) return url.error();
    endpoint.url = *url;
    endpoint.source = "--server";
  }

  if (!choice.token_file.empty()) {
    Result<std::string> token = ReadToken(choice.token_file);
    if (!token.ok()) return token.error();
    endpoint.token = *token;
  } else if (!choice.token.empty()) {
    endpoint.token = choice.token;
  } else if (running.ok() && *running == endpoint.url) {
    // Sends the token of a data folder only to the server that runs on it.
    Result<std::string> token = ReadToken(choice.data_dir / "token");
    if (!token.ok()) return token.error();
    endpoint.token = *token;
    endpoint.data_dir = choice.data_dir;
  }
  return endpoint;
}

Result<std::string> FindCurrentUrl(const Endpoint& endpoint) {
  if (endpoint.data_dir.empty()) return endpoint.url;
  return RunningUrl(endpoint.data_dir);
}

}  // namespace attune::cli
