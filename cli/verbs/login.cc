#include "base/result.h"
#include "cli/verbs/verb.h"
#include "server/folder/browser_sessions.h"

namespace attune::cli {
namespace {

struct LoginFlags {
  ServerChoice server;

  void AddTo(CLI::App& verb) {
    verb.add_option("--data-dir", server.data_dir, "the server's data folder, on this machine")
        ->type_name("DIR")
        ->capture_default_str();
  }
};

ExitCode Login(const LoginFlags& flags, Console& console) {
  const Result<Endpoint> endpoint = FindServer(flags.server);
  if (!endpoint.ok()) return Fail(console, endpoint.error());
  const Result<std::string> code = server::BrowserSessions(flags.server.data_dir).CreateCode();
  if (!code.ok()) return Fail(console, code.error());
  console.err.Print("open this link within ten minutes; it logs one browser in:");
  console.out.Print(endpoint->url + "/login?code=" + *code);
  return ExitCode::kSuccess;
}

}  // namespace

void AddLoginVerb(CLI::App& app, Action& chosen) {
  AddVerb<LoginFlags>(app, chosen, "login", "print a link that logs a browser in", Login);
}

}  // namespace attune::cli
