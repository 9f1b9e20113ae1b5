#include "server/folder/named_tokens.h"

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "system/files.h"
#include "tls/join.h"

namespace attune::cli {
namespace {

// The flags of every command on tokens.
struct TokenFlags {
  std::string data_dir = "attune-data";

  void AddTo(CLI::App& command) {
    command.add_option("--data-dir", data_dir, "Server's data folder, on this host")
        ->type_name("DIR")
        ->capture_default_str();
  }

  server::NamedTokens tokens() const { return server::NamedTokens(data_dir); }
};

struct TokenNameFlags : TokenFlags {
  std::string name;

  void AddTo(CLI::App& command) {
    TokenFlags::AddTo(command);
    command.add_option("NAME", name, "Name of the token")->required()->type_name("NAME");
  }
};

struct TokenCreateFlags : TokenNameFlags {
  server::Role role = server::Role::kViewer;
  std::string expires;

  void AddTo(CLI::App& command) {
    static const std::map<std::string, server::Role> kRoles = {
        {"admin", server::Role::kAdmin},
        {"viewer", server::Role::kViewer},
        {"executor", server::Role::kExecutor}};
    TokenNameFlags::AddTo(command);
    command
        .add_option(
            "--role", role,
            "viewer reads everything, admin does everything, executor only joins as an executor")
        ->transform(CLI::CheckedTransformer(kRoles))
        ->type_name("ROLE")
        ->default_str("viewer");
    command.add_option("--expires", expires, "Time until it stops working, such as 30d")
        ->type_name("TIME");
  }
};

struct TokenListFlags : TokenFlags {
  OutputFlags output;

  void AddTo(CLI::App& command) {
    TokenFlags::AddTo(command);
    output.AddTo(command);
  }
};

// When the token expires, as RFC 3339 in UTC; empty: never.
std::string ExpiryText(const server::NamedToken& token) {
  if (!token.expires) return "";
  const std::time_t time = std::chrono::system_clock::to_time_t(*token.expires);
  std::tm utc{};
  gmtime_r(&time, &utc);
  std::array<char, 32> text{};
  return std::string(text.data(),
                     std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc));
}

// The text that executors join with: the token and, with TLS, the fingerprint of the server's
// certificate.
std::string JoinWord(const TokenFlags& flags, const std::string& token) {
  const Result<std::string> word = attune::ReadWord(std::filesystem::path(flags.data_dir) / "join");
  tls::Join join = tls::ParseJoin(word.ok() ? *word : "").value_or(tls::Join());
  join.token = token;
  return tls::ToText(join);
}

ExitCode Create(const TokenCreateFlags& flags, Console& console) {
  std::optional<std::chrono::sys_seconds> expires;
  if (!flags.expires.empty()) {
    const std::optional<double> seconds = ParseDuration(flags.expires);
    if (!seconds || *seconds < 1 || std::chrono::duration<double>(*seconds) > server::kTokenLifeMax)
      return Fail(console, Error{ErrorCode::kInvalid,
                                 "--expires: " + flags.expires +
                                     " is not a time from 1s to 3650d; write it as 12h or 30d"});
    expires = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()) +
              std::chrono::seconds(static_cast<int64_t>(*seconds));
  }
  const Result<std::string> secret = flags.tokens().Create(flags.name, flags.role, expires);
  if (!secret.ok()) return Fail(console, secret.error());
  console.err.Print("token of " + flags.name + " (" + std::string(ToString(flags.role)) +
                    "), printed only once:");
  console.out.Print(flags.role == server::Role::kExecutor ? JoinWord(flags, *secret) : *secret);
  return ExitCode::kSuccess;
}

ExitCode Rotate(const TokenNameFlags& flags, Console& console) {
  const Result<std::string> secret = flags.tokens().Rotate(flags.name);
  if (!secret.ok()) return Fail(console, secret.error());
  if (flags.name == server::kJoinToken) {
    const std::filesystem::path file = std::filesystem::path(flags.data_dir) / "join";
    const Status written = WriteWhole(file, JoinWord(flags, *secret) + "\n", kPrivate);
    if (!written.ok()) return Fail(console, written.error());
    console.err.Print(file.string() + " has the new token; copy the file to each executor's host");
    return ExitCode::kSuccess;
  }
  console.err.Print("new token of " + flags.name + ", printed only once:");
  console.out.Print(*secret);
  return ExitCode::kSuccess;
}

ExitCode List(const TokenListFlags& flags, Console& console) {
  const Result<std::vector<server::NamedToken>> tokens = flags.tokens().List();
  if (!tokens.ok()) return Fail(console, tokens.error());
  if (flags.output.json()) {
    Json list = Json::array();
    for (const server::NamedToken& token : *tokens)
      list.push_back({{"name", token.name},
                      {"role", ToString(token.role)},
                      {"expires", token.expires ? Json(ExpiryText(token)) : Json()}});
    console.out.Print(Dump({{"tokens", std::move(list)}}, 2));
    return ExitCode::kSuccess;
  }
  if (tokens->empty()) {
    console.err.Print(
        "no tokens except the server's own; create one with `attune token create NAME`");
    return ExitCode::kSuccess;
  }
  Table table({{"NAME"}, {"ROLE"}, {"EXPIRES"}});
  for (const server::NamedToken& token : *tokens)
    table.Add({token.name, std::string(ToString(token.role)),
               token.HasExpired() ? "expired" : ExpiryText(token)});
  console.out.PrintLines(table.Lines(console.out.style(), console.out.width()));
  return ExitCode::kSuccess;
}

ExitCode Remove(const TokenNameFlags& flags, Console& console) {
  const Status removed = flags.tokens().Remove(flags.name);
  if (!removed.ok()) return Fail(console, removed.error());
  console.out.Print("revoked the token of " + flags.name);
  return ExitCode::kSuccess;
}

}  // namespace

void AddTokenCommands(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("token", "Manage access tokens");
  noun.require_subcommand(1);
  AddCommand<TokenCreateFlags>(noun, chosen, "create", "Create a token and print it", Create);
  AddCommand<TokenListFlags>(noun, chosen, "list", "List tokens, except the server's own", List);
  AddCommand<TokenNameFlags>(noun, chosen, "rotate", "Replace a token", Rotate);
  AddCommand<TokenNameFlags>(noun, chosen, "rm", "Revoke a token", Remove);
}

}  // namespace attune::cli
