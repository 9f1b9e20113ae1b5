#include "base/result.h"
#include "cli/json.h"
#include "cli/verbs/verb.h"
#include "core/log/secret_names.h"
#include "server/folder/secrets.h"

namespace attune::cli {
namespace {

// The flags of every verb on secrets.
struct SecretFlags {
  std::string data_dir = "attune-data";

  void AddTo(CLI::App& verb) {
    verb.add_option("--data-dir", data_dir, "the server's data folder, on this machine")
        ->type_name("DIR")
        ->capture_default_str();
  }

  server::Secrets secrets() const { return server::Secrets(data_dir); }
};

struct SecretNameFlags : SecretFlags {
  std::string name;

  void AddTo(CLI::App& verb) {
    SecretFlags::AddTo(verb);
    verb.add_option("name", name, "the environment variable that programs read")
        ->required()
        ->type_name("NAME");
  }
};

struct SecretRemoveFlags : SecretNameFlags {
  bool forget = false;

  void AddTo(CLI::App& verb) {
    SecretNameFlags::AddTo(verb);
    verb.add_flag("--forget", forget,
                  "delete its values from the disk; logs that contain them show them from then on");
  }
};

struct SecretListFlags : SecretFlags {
  OutputFlags output;

  void AddTo(CLI::App& verb) {
    SecretFlags::AddTo(verb);
    output.AddTo(verb);
  }
};

ExitCode SetSecret(const SecretNameFlags& flags, Console& console) {
  if (!IsSecretName(flags.name))
    return Fail(console, {ErrorCode::kInvalid,
                          "`" + flags.name +
                              "` is no name of a secret: give 1 to 128 letters, digits or _, no "
                              "digit first, and not ATTUNE_ first"});
  const Result<std::string> value =
      console.host.read_secret("value of " + flags.name + " (hidden): ", console.interrupt);
  if (!value.ok()) return Fail(console, value.error());
  const Status set = flags.secrets().Set(flags.name, *value);
  if (!set.ok()) return Fail(console, {set.error().code, flags.name + ": " + set.error().message});
  console.err.Print("the secret " + flags.name + " is set; `secrets: [" + flags.name +
                    "]` in a sweep file gives it to the program");
  if (value->size() < server::kMaskedBytesMin)
    console.err.Print("it has fewer than " + std::to_string(server::kMaskedBytesMin) +
                      " bytes, so logs that contain it show it");
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
  console.err.Print("the secret " + flags.name +
                    " is removed; programs that run keep it, and nothing that needs it starts");
  if (!flags.forget)
    console.err.Print("logs still mask its values; `--forget` deletes them from the disk");
  return ExitCode::kSuccess;
}

}  // namespace

void AddSecretVerbs(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("secret", "values for programs that nobody else may see");
  noun.require_subcommand(1);
  AddVerb<SecretNameFlags>(noun, chosen, "set", "set a secret; its value comes from stdin",
                           SetSecret);
  AddVerb<SecretListFlags>(noun, chosen, "list", "list the names of all secrets", ListSecrets);
  AddVerb<SecretRemoveFlags>(noun, chosen, "rm", "remove a secret", RemoveSecret);
}

}  // namespace attune::cli
