#include "base/result.h"

#include "base/version.h"
#include "cli/commands/command.h"
#include "cli/json.h"

namespace attune::cli {
namespace {

ExitCode ShowVersion(const ClientFlags& flags, Console& console) {
  flags.output.Apply(console);
  std::optional<std::string> server;  // its version
  std::string why_not;
  const Result<Endpoint> endpoint = FindServer(flags.server);
  if (endpoint.ok()) {
    Api api(*endpoint);
    const auto answer = api.Version();
    if (answer.ok()) {
      server = answer->version;
    } else {
      why_not = answer.error().message;
    }
  } else {
    why_not = endpoint.error().message;
  }

  if (flags.output.json()) {
    console.out.Print(Dump({{"client", kVersion},
                            {"server", rest::ToJson(server)},
                            {"url", server.has_value() ? Json(endpoint->url) : Json(nullptr)}},
                           2));
    return ExitCode::kSuccess;
  }
  console.out.Print(std::string("attune ") + kVersion);
  if (server.has_value()) {
    console.out.Print("server " + *server + " at " + endpoint->url);
  } else {
    console.err.Print(why_not.substr(0, why_not.find('\n')));
  }
  return ExitCode::kSuccess;
}

}  // namespace

void AddVersionCommand(CLI::App& app, Action& chosen) {
  AddCommand<ClientFlags>(app, chosen, "version",
                          "Print the versions of this program and the server", ShowVersion);
}

}  // namespace attune::cli
