#include "cli/joining.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <iostream>

#include "base/result.h"

namespace attune::cli {
namespace {

// The file with the credentials; empty if they come from stdin or the environment.
std::filesystem::path FileOf(const JoinSource& source) {
  if (source.file == "-" || (source.file.empty() && !source.environment.empty())) return {};
  return source.file.empty() ? source.data_dir / "join" : source.file;
}

Result<std::string> FindCredentials(const JoinSource& source) {
  if (source.file == "-") {
    std::string word;
    std::getline(std::cin, word);
    return word;
  }
  const std::filesystem::path file = FileOf(source);
  if (file.empty()) return source.environment;
  auto word = ReadToken(file);
  if (word.ok()) return word;
  return Error{word.error().code,
               word.error().message +
                   "\ncopy the server's DATA-DIR/join to this host and pass it with "
                   "--token-file, or set ATTUNE_TOKEN to its content"};
}

}  // namespace

std::string_view HostOf(std::string_view target) {
  target = target.substr(0, target.rfind(':'));
  if (target.starts_with('[') && target.ends_with(']'))
    target = target.substr(1, target.size() - 2);
  return target;
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  in_addr address{};  // in network byte order
  return inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}

std::string ExecutorCommand(const RunningServer& server, const std::filesystem::path& data_dir) {
  return "attune executor --server " + server.rpc_target() + " --token-file " +
         (data_dir / "join").string();
}

Result<tls::Join> FindJoin(const JoinSource& source, const std::string& target) {
  const Result<std::string> word = FindCredentials(source);
  if (!word.ok()) return word.error();
  auto join = tls::ParseJoin(*word);
  if (!join) {
    return Error{ErrorCode::kInvalid,
                 "--token-file: this is not the content of the server's DATA-DIR/join, which is "
                 "TOKEN or sha256:FINGERPRINT:TOKEN"};
  }
  if (join->fingerprint.empty() && !IsLoopback(HostOf(target))) {
    return Error{ErrorCode::kInvalid,
                 "--server " + target +
                     ": a token alone would be sent without encryption\npass the "
                     "DATA-DIR/join of a server that accepts other hosts (`attune serve "
                     "--rpc-host ADDRESS`), which also has the fingerprint of its certificate"};
  }
  return *std::move(join);
}

std::filesystem::path ServerFolderOf(const JoinSource& source) {
  const std::filesystem::path file = FileOf(source);
  if (file.empty()) return {};
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(file, error).parent_path();
  return !error && std::filesystem::exists(folder / "server-id", error) ? folder
                                                                        : std::filesystem::path();
}

}  // namespace attune::cli
