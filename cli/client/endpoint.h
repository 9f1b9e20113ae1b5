#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace attune::cli {

// The address of a server and the token for it.
struct Endpoint {
  std::string url;     // http://127.0.0.1:7070, without a slash at the end
  std::string token;   // empty: no token is known
  std::string source;  // where the address comes from, for messages: "--server", "attune-data"
  // The data folder that the address or token comes from; empty for others. Look the address up
  // there before each connection, because another program may have taken it.
  std::filesystem::path data_dir = {};
};

// How the command line and environment name the server. Empty members were not given.
struct ServerChoice {
  std::string server;  // URL or HOST:PORT
  std::string token;
  std::filesystem::path token_file;  // has priority over `token`
  std::filesystem::path data_dir = "attune-data";
};

// The server that is named or, without a name, the one that runs on the data folder. Errors:
// kUnavailable if no server runs on it, kInvalid for a wrong address, kDenied for an unreadable
// token file.
Result<Endpoint> FindServer(const ServerChoice& choice);

// The current URL of the endpoint's server, which may have restarted on another port. kUnavailable
// if it no longer runs: then its token must not be sent to the old address.
Result<std::string> FindCurrentUrl(const Endpoint& endpoint);

// The first line of a token file.
Result<std::string> ReadToken(const std::filesystem::path& file);

// Converts "HOST:PORT", ":PORT" (on this host) or a URL to "http://HOST:PORT" or
// "https://HOST:PORT".
Result<std::string> NormaliseUrl(std::string_view address);

}  // namespace attune::cli
