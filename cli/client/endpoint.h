#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace attune::cli {

// Where a server answers and what it lets in.
struct Endpoint {
  std::string url;     // http://127.0.0.1:7070, without a slash at the end
  std::string token;   // empty: none is known
  std::string source;  // how it was found, for messages: "--server", "attune-data"
  // If the address or the token is that of the server of a data folder, the folder. Ask it before
  // each connection: another program may have the address meanwhile.
  std::filesystem::path data_dir = {};
};

// What a person said about where the server is; empty means not said.
struct ServerChoice {
  std::string server;  // URL or HOST:PORT
  std::string token;
  std::filesystem::path token_file;  // wins over `token`
  std::filesystem::path data_dir = "attune-data";
};

// The server named, or the one that runs on the data folder. Errors: kUnavailable when no server
// has the folder, kInvalid for a bad address, kDenied when the token's file cannot be read.
Result<Endpoint> FindServer(const ServerChoice& choice);

// Where the server of the endpoint answers now. It may have been started again on another port.
// kUnavailable if it no longer runs; the endpoint's token is for nobody else.
Result<std::string> FindAgain(const Endpoint& endpoint);

// The first line of a token's file.
Result<std::string> ReadToken(const std::filesystem::path& file);

// "http://HOST:PORT" of "HOST:PORT", ":PORT" (this host) or a URL.
Result<std::string> NormaliseUrl(std::string_view address);

}  // namespace attune::cli
