#include "cli/joining.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/result.h"

namespace attune::cli {
namespace {

// HOST of HOST:PORT and [HOST]:PORT.
std::string_view HostOf(std::string_view target) {
  target = target.substr(0, target.rfind(':'));
  if (target.starts_with('[') && target.ends_with(']'))
    target = target.substr(1, target.size() - 2);
  return target;
}

Result<std::string> FindWord(const JoinSource& source) {
  if (!source.word.empty()) return source.word;
  if (source.file.empty() && !source.environment.empty()) return source.environment;
  auto word = ReadToken(source.file.empty() ? source.data_dir / "join" : source.file);
  if (word.ok()) return word;
  return Error{word.error().code,
               word.error().message +
                   "\ngive what `attune serve` prints with --join, or a file with it with "
                   "--token-file, or ATTUNE_TOKEN; it lies in the server's DATA-DIR/join"};
}

}  // namespace

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  in_addr address{};  // in the network's order
  return inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}

std::string ExecutorCommand(const RunningServer& server, const std::filesystem::path& data_dir) {
  const tls::Join join = server.join();
  return "attune executor --server " + server.rpc_target() +
         (join.fingerprint.empty() ? " --token-file " + (data_dir / "join").string()
                                   : " --join " + tls::ToText(join));
}

Result<tls::Join> FindJoin(const JoinSource& source, const std::string& target) {
  const Result<std::string> word = FindWord(source);
  if (!word.ok()) return word.error();
  auto join = tls::ParseJoin(*word);
  if (!join) {
    return Error{ErrorCode::kInvalid,
                 "--join: this is not the whole word that `attune serve` prints, which is "
                 "sha256:FINGERPRINT:TOKEN"};
  }
  if (join->fingerprint.empty() && !IsLoopback(HostOf(target))) {
    return Error{ErrorCode::kInvalid,
                 "--server " + target +
                     ": a token alone would cross the network in the clear\ngive --join "
                     "sha256:FINGERPRINT:TOKEN as the server prints it when it listens for other "
                     "machines (`attune serve --rpc-host ADDRESS`)"};
  }
  return *std::move(join);
}

}  // namespace attune::cli
