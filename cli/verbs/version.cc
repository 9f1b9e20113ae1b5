#include "cli/version.h"
#include "base/result.h"

#include "cli/json.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

ExitCode ShowVersion(const ClientFlags& flags, Console& console) {
  flags.output.Apply(console);
  Json versions = {{"client", kVersion}, {"server", nullptr}, {"url", nullptr}};
  std::string why_not;
  const Result<Endpoint> endpoint = FindServer(flags.server);
  if (endpoint.ok()) {
    Api api(*endpoint);
    const Result<Json> answer = api.Version();
    if (answer.ok()) {
      versions["server"] = At(*answer, "version");
      versions["url"] = endpoint->url;
    } else {
      why_not = answer.error().message;
    }
  } else {
    why_not = endpoint.error().message;
  }

  if (flags.output.json()) {
    console.out.Print(Dump(versions, 2));
    return ExitCode::kSuccess;
  }
  console.out.Print(std::string("attune ") + kVersion);
  if (versions["server"].is_null()) {
    console.err.Print(why_not.substr(0, why_not.find('\n')));
  } else {
    console.out.Print("server " + TextAt(versions, "server") + " at " + endpoint->url);
  }
  return ExitCode::kSuccess;
}

}  // namespace

void AddVersionVerb(CLI::App& app, Action& chosen) {
  CLI::App* const verb = app.add_subcommand("version", "version of this program and of the server");
  auto flags = std::make_shared<ClientFlags>();
  flags->AddTo(*verb);
  verb->callback([flags, &chosen] {
    chosen = [flags](Console& console) { return ShowVersion(*flags, console); };
  });
}

}  // namespace attune::cli
