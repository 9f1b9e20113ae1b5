#include "server/folder/named_tokens.h"

#include <map>

#include "base/result.h"
#include "cli/json.h"
#include "cli/text/table.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

struct TokenFlags {
  std::string data_dir = "attune-data";
  std::string name;
  server::Role role = server::Role::kViewer;
  OutputFlags output;

  server::NamedTokens tokens() const { return server::NamedTokens(data_dir); }
};

using TokenAction = ExitCode (*)(const TokenFlags&, Console&);

ExitCode Create(const TokenFlags& flags, Console& console) {
  const Result<std::string> secret = flags.tokens().Create(flags.name, flags.role);
  if (!secret.ok()) return Fail(console, secret.error());
  console.err.Print("the token of " + flags.name + ", " +
                    (flags.role == server::Role::kAdmin ? "who may do everything"
                                                        : "who may look and change nothing") +
                    "; it is told this once:");
  console.out.Print(*secret);
  return ExitCode::kSuccess;
}

ExitCode List(const TokenFlags& flags, Console& console) {
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

ExitCode Remove(const TokenFlags& flags, Console& console) {
  const Status removed = flags.tokens().Remove(flags.name);
  if (!removed.ok()) return Fail(console, removed.error());
  console.out.Print("the token of " + flags.name + " opens nothing any more");
  return ExitCode::kSuccess;
}

}  // namespace

void AddTokenVerbs(CLI::App& app, Action& chosen) {
  CLI::App* const token = app.add_subcommand("token", "who may use a server, and in which name");
  token->require_subcommand(1);
  const auto add = [&](const char* name, const char* description, TokenAction action) {
    CLI::App* const verb = token->add_subcommand(name, description);
    auto flags = std::make_shared<TokenFlags>();
    verb->add_option("--data-dir", flags->data_dir, "the server's data folder")
        ->type_name("DIR")
        ->capture_default_str();
    verb->callback([flags, action, &chosen] {
      chosen = [flags, action](Console& console) { return action(*flags, console); };
    });
    return std::pair(verb, flags);
  };
  const auto [create, created] = add("create", "a new one, whose secret is printed", Create);
  create->add_option("name", created->name, "whose it is")->required()->type_name("NAME");
  static const std::map<std::string, server::Role> kRoles = {{"admin", server::Role::kAdmin},
                                                             {"viewer", server::Role::kViewer}};
  create
      ->add_option("--role", created->role,
                   "viewer, who may look and change nothing, or admin, who may do everything")
      ->transform(CLI::CheckedTransformer(kRoles))
      ->type_name("ROLE")
      ->default_str("viewer");
  const auto [list, listed] = add("list", "all but the server's own", List);
  listed->output.AddTo(*list);
  const auto [remove, removed] = add("rm", "from now on it opens nothing", Remove);
  remove->add_option("name", removed->name, "whose it is")->required()->type_name("NAME");
}

}  // namespace attune::cli
