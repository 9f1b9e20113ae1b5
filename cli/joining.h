#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/host.h"
#include "tls/join.h"

namespace attune::cli {

// HOST of HOST:PORT and [HOST]:PORT.
std::string_view HostOf(std::string_view target);

// Whether `host` is an address, or the name, by which a machine speaks with itself alone.
bool IsLoopback(std::string_view host);

// The command that starts an executor for the server. On another machine the file is to be copied.
std::string ExecutorCommand(const RunningServer& server, const std::filesystem::path& data_dir);

// Where an executor has its word from; the first that is there.
struct JoinSource {
  std::filesystem::path file;  // --token-file; `-` means standard input
  std::string environment;     // ATTUNE_TOKEN
  std::filesystem::path data_dir;
};

// The word with which an executor joins `target`, HOST:PORT. kDenied when there is none to read,
// kInvalid when it is none, or without a fingerprint for a server on another machine, which would
// send the token in the clear.
Result<tls::Join> FindJoin(const JoinSource& source, const std::string& target);

// The data folder of the server, if the word comes from its file `join`; empty otherwise.
std::filesystem::path ServerFolderOf(const JoinSource& source);

}  // namespace attune::cli
