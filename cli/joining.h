#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/host.h"
#include "tls/join.h"

namespace attune::cli {

// HOST of HOST:PORT or [HOST]:PORT.
std::string_view HostOf(std::string_view target);

// Whether `host` is a loopback address or "localhost", which other hosts cannot reach.
bool IsLoopback(std::string_view host);

// The command that starts an executor for the server. On another host, copy the token file first.
std::string ExecutorCommand(const RunningServer& server, const std::filesystem::path& data_dir);

// The sources of the text that an executor joins with; the first one given is used.
struct JoinSource {
  std::filesystem::path file;  // --token-file; `-` means standard input
  std::string environment;     // ATTUNE_TOKEN
  std::filesystem::path data_dir;
};

// The credentials with which an executor joins `target`, HOST:PORT. kDenied if they cannot be read.
// kInvalid if they are malformed, or have no fingerprint for a server on another host, because the
// token would be sent without encryption.
Result<tls::Join> FindJoin(const JoinSource& source, const std::string& target);

// The server's data folder, if the credentials come from its file `join`; empty otherwise.
std::filesystem::path ServerFolderOf(const JoinSource& source);

}  // namespace attune::cli
