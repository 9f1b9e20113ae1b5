#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/json.h"
#include "core/log/secret_names.h"
#include "server/folder/secrets.h"

namespace attune::cli {
namespace {

// The flags of every command on secrets.
struct SecretFlags {
  std::string data_dir = "attune-data";

  void AddTo(CLI::App& command) {
    command.add_option("--data-dir", data_dir, "Server's data folder, on this host")
        ->type_name("DIR")
        ->capture_default_str();
  }

  server::Secrets secrets() const { return server::Secrets(data_dir); }
};

struct SecretNameFlags : SecretFlags {
  std::string name;

  void AddTo(CLI::App& command) {
    SecretFlags::AddTo(command);
    command.add_option("NAME", name, "Environment variable that programs read")
        ->required()
        ->type_name("NAME");
  }
};

struct SecretRemoveFlags : SecretNameFlags {
  bool forget = false;

  void AddTo(CLI::App& command) {
    SecretNameFlags::AddTo(command);
    command.add_flag("--forget", forget, "Also delete its values from disk; logs then show them");
  }
};

struct SecretListFlags : SecretFlags {
  OutputFlags output;

  void AddTo(CLI::App& command) {
    SecretFlags::AddTo(command);
    output.AddTo(command);
  }
};

ExitCode SetSecret(const SecretNameFlags& flags, Console& console) {
  if (!IsSecretName(flags.name))
    return Fail(console, {ErrorCode::kInvalid,
                          "`" + flags.name +
                              "` is not a valid name of a secret; use 1 to 128 letters, digits or "
                              "_, and do not begin with a digit or ATTUNE_"});
  const Result<std::string> value =
      console.host.read_secret("value of " + flags.name + " (hidden): ", console.interrupt);
  if (!value.ok()) return Fail(console, value.error());
  const Status set = flags.secrets().Set(flags.name, *value);
  if (!set.ok()) return Fail(console, {set.error().code, flags.name + ": " + set.error().message});
  console.err.Print("set secret " + flags.name + "; `secrets: [" + flags.name +
                    "]` in a sweep file passes it to the program");
  if (value->size() < server::kMaskedBytesMin)
    console.err.Print("logs do not mask it, because it has fewer than " +
                      std::to_string(server::kMaskedBytesMin) + " bytes");
  return ExitCode::kSuccess;
}

ExitCode ListSecrets(const SecretListFlags& flags, Console& console) {
  const Result<std::vector<std::string>> names = flags.secrets().Names();
  if (!names.ok()) return Fail(console, names.error());
  if (flags.output.json()) {
    console.out.Print(Dump({{"secrets", *names}}, 2));
    return ExitCode::kSuccess;
  }
  if (names->empty()) console.err.Print("no secret is set; set one with `attune secret set NAME`");
  console.out.PrintLines(*names);
  return ExitCode::kSuccess;
}

ExitCode RemoveSecret(const SecretRemoveFlags& flags, Console& console) {
  const Status removed = flags.secrets().Remove(flags.name, flags.forget);
  if (!removed.ok()) return Fail(console, removed.error());
  console.err.Print("removed secret " + flags.name +
                    "; running programs keep it, and trials that need it wait");
  if (!flags.forget)
    console.err.Print("logs still mask its values, which `--forget` deletes from disk");
  return ExitCode::kSuccess;
}

}  // namespace

void AddSecretCommands(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("secret", "Manage secrets of sweeps");
  noun.require_subcommand(1);
  AddCommand<SecretNameFlags>(noun, chosen, "set", "Set a secret; reads the value from stdin",
                              SetSecret);
  AddCommand<SecretListFlags>(noun, chosen, "list", "List the names of secrets", ListSecrets);
  AddCommand<SecretRemoveFlags>(noun, chosen, "rm", "Remove a secret", RemoveSecret);
}

}  // namespace attune::cli
