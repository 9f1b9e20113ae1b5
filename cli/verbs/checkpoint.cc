#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

struct CheckpointFlags : ClientFlags {
  std::string name;
};

ExitCode SetPinned(const CheckpointFlags& flags, bool pinned, Console& console, Api& api) {
  const Result<CheckpointName> name = CheckpointName::Parse(flags.name);
  if (!name.ok()) return Fail(console, name.error());
  return ShowEffect(flags.output, console, "checkpoint " + flags.name,
                    api.PinCheckpoint(*name, pinned));
}

void Add(CLI::App& noun, Action& chosen, const char* name, const char* help, bool pinned) {
  CLI::App* const verb = noun.add_subcommand(name, help);
  auto flags = std::make_shared<CheckpointFlags>();
  verb->add_option("CHECKPOINT", flags->name, "SWEEP/NUMBER/ATTEMPT-STEP, such as s1/17/2-900")
      ->required();
  flags->AddTo(*verb);
  verb->callback([flags, pinned, &chosen] {
    chosen = [flags, pinned](Console& console) {
      return WithServer(*flags, console,
                        [&](Api& api) { return SetPinned(*flags, pinned, console, api); });
    };
  });
}

}  // namespace

void AddCheckpointVerbs(CLI::App& app, Action& chosen) {
  CLI::App* const noun = app.add_subcommand("checkpoint", "keep checkpoints");
  noun->require_subcommand(1);
  Add(*noun, chosen, "pin", "keep a checkpoint, whatever the sweep file says", true);
  Add(*noun, chosen, "unpin", "leave a checkpoint to the sweep file again", false);
}

}  // namespace attune::cli
