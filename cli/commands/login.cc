#include "base/result.h"
#include "cli/commands/command.h"
#include "server/folder/browser_sessions.h"

namespace attune::cli {
namespace {

struct LoginFlags {
  ServerChoice server;

  void AddTo(CLI::App& command) {
    command.add_option("--data-dir", server.data_dir, "Server's data folder, on this host")
        ->type_name("DIR")
        ->capture_default_str();
  }
};

ExitCode Login(const LoginFlags& flags, Console& console) {
  const Result<Endpoint> endpoint = FindServer(flags.server);
  if (!endpoint.ok()) return Fail(console, endpoint.error());
  const Result<std::string> code = server::BrowserSessions(flags.server.data_dir).CreateCode();
  if (!code.ok()) return Fail(console, code.error());
  console.err.Print("open this link within ten minutes; it logs in one browser:");
  console.out.Print(endpoint->url + "/login?code=" + *code);
  return ExitCode::kSuccess;
}

}  // namespace

void AddLoginCommand(CLI::App& app, Action& chosen) {
  AddCommand<LoginFlags>(app, chosen, "login", "Print a login link for a browser", Login);
}

}  // namespace attune::cli
