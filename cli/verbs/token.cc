#include "server/folder/named_tokens.h"

#include <map>

#include "base/result.h"
#include "cli/json.h"
#include "cli/text/table.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

// The flags of every verb on tokens.
struct TokenFlags {
  std::string data_dir = "attune-data";

  void AddTo(CLI::App& verb) {
    verb.add_option("--data-dir", data_dir, "the server's data folder")
        ->type_name("DIR")
        ->capture_default_str();
  }

  server::NamedTokens tokens() const { return server::NamedTokens(data_dir); }
};

struct TokenNameFlags : TokenFlags {
  std::string name;

  void AddTo(CLI::App& verb) {
    TokenFlags::AddTo(verb);
    verb.add_option("name", name, "whose it is")->required()->type_name("NAME");
  }
};

struct TokenCreateFlags : TokenNameFlags {
  server::Role role = server::Role::kViewer;

  void AddTo(CLI::App& verb) {
    static const std::map<std::string, server::Role> kRoles = {{"admin", server::Role::kAdmin},
                                                               {"viewer", server::Role::kViewer}};
    TokenNameFlags::AddTo(verb);
    verb.add_option("--role", role,
                    "viewer, who may look and change nothing, or admin, who may do everything")
        ->transform(CLI::CheckedTransformer(kRoles))
        ->type_name("ROLE")
        ->default_str("viewer");
  }
};

struct TokenListFlags : TokenFlags {
  OutputFlags output;

  void AddTo(CLI::App& verb) {
    TokenFlags::AddTo(verb);
    output.AddTo(verb);
  }
};

ExitCode Create(const TokenCreateFlags& flags, Console& console) {
  const Result<std::string> secret = flags.tokens().Create(flags.name, flags.role);
  if (!secret.ok()) return Fail(console, secret.error());
  console.err.Print("the token of " + flags.name + ", " +
                    (flags.role == server::Role::kAdmin ? "who may do everything"
                                                        : "who may look and change nothing") +
                    "; it is told this once:");
  console.out.Print(*secret);
  return ExitCode::kSuccess;
}

ExitCode List(const TokenListFlags& flags, Console& console) {
  const std::vector<server::NamedToken> tokens = flags.tokens().List();
  if (flags.output.json()) {
    Json list = Json::array();
    for (const server::NamedToken& token : tokens)
      list.push_back({{"name", token.name}, {"role", ToString(token.role)}});
    console.out.Print(Dump({{"tokens", std::move(list)}}, 2));
    return ExitCode::kSuccess;
  }
  if (tokens.empty()) {
    console.err.Print("no token but the server's own; make one with `attune token create NAME`");
    return ExitCode::kSuccess;
  }
  Table table({{"NAME"}, {"ROLE"}});
  for (const server::NamedToken& token : tokens)
    table.Add({token.name, std::string(ToString(token.role))});
  console.out.PrintLines(table.Lines(console.out.style(), console.out.width()));
  return ExitCode::kSuccess;
}

ExitCode Remove(const TokenNameFlags& flags, Console& console) {
  const Status removed = flags.tokens().Remove(flags.name);
  if (!removed.ok()) return Fail(console, removed.error());
  console.out.Print("the token of " + flags.name + " opens nothing any more");
  return ExitCode::kSuccess;
}

}  // namespace

void AddTokenVerbs(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("token", "who may use a server, and in which name");
  noun.require_subcommand(1);
  AddVerb<TokenCreateFlags>(noun, chosen, "create", "a new one, whose secret is printed", Create);
  AddVerb<TokenListFlags>(noun, chosen, "list", "all but the server's own", List);
  AddVerb<TokenNameFlags>(noun, chosen, "rm", "from now on it opens nothing", Remove);
}

}  // namespace attune::cli
