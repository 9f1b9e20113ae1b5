#include "cli/commands/annotate.h"

#include <optional>

#include "base/result.h"
#include "cli/json.h"

namespace attune::cli {
namespace {

struct AnnotatedSweep : SweepNameFlags {
  std::string Name() const { return "sweep " + id; }
  Answer<rest::SteeredSweep> Annotate(Api& api, const rest::Annotation& changes) const {
    return api.SteerSweep(id, "annotate", rest::ToJson(changes));
  }
};

struct AnnotatedTrial : ClientFlags {
  std::string trial;

  void AddTo(CLI::App& command) {
    command.add_option("TRIAL", trial, "Trial, such as s1/17")->required();
    ClientFlags::AddTo(command);
  }
  std::string Name() const { return "trial " + trial; }
  Answer<rest::SteeredTrial> Annotate(Api& api, const rest::Annotation& changes) const {
    const Result<TrialName> name = TrialName::Parse({trial});
    if (!name.ok()) return name.error();
    return api.SteerTrial(*name, "annotate", rest::ToJson(changes));
  }
};

// The flags of a command that changes the note of a sweep or a trial.
template <class Subject>
struct NoteFlags : Subject {
  std::string note;

  void AddTo(CLI::App& command) {
    Subject::AddTo(command);
    command.add_option("TEXT", note, "New note, which may have several lines; \"\": none")
        ->required();
  }
};

template <class Subject>
ExitCode SetNote(const NoteFlags<Subject>& flags, Console& console, Api& api) {
  return ShowEffect(flags.output, console, flags.Name(), flags.Annotate(api, {.note = flags.note}));
}

// The flags of a command that changes the tags of a sweep or a trial.
template <class Subject>
struct TagFlags : Subject {
  std::vector<std::string> added;
  std::vector<std::string> removed;

  void AddTo(CLI::App& command) {
    Subject::AddTo(command);
    command.add_option("TAG", added, "Tags to add");
    command.add_option("--remove", removed, "Tag to remove (repeatable)")
        ->type_name("TAG")
        ->allow_extra_args(false);
  }
};

std::optional<std::vector<std::string>> OmitIfNone(const std::vector<std::string>& tags) {
  return tags.empty() ? std::nullopt : std::optional(tags);
}

template <class Subject>
ExitCode ChangeTags(const TagFlags<Subject>& flags, Console& console, Api& api) {
  if (flags.added.empty() && flags.removed.empty())
    return Fail(console, {ErrorCode::kInvalid,
                          "no tag is given; write tags to add, or --remove TAG to remove one"});
  return ShowEffect(flags.output, console, flags.Name(),
                    flags.Annotate(api, {.add_tags = OmitIfNone(flags.added),
                                         .remove_tags = OmitIfNone(flags.removed)}));
}

}  // namespace

void AddSweepAnnotations(CLI::App& noun, Action& chosen) {
  AddCommand<NoteFlags<AnnotatedSweep>>(noun, chosen, "note", "Set the note of a sweep", SetNote);
  AddCommand<TagFlags<AnnotatedSweep>>(noun, chosen, "tag", "Add and remove tags of a sweep",
                                       ChangeTags);
}

void AddTrialAnnotations(CLI::App& noun, Action& chosen) {
  AddCommand<NoteFlags<AnnotatedTrial>>(noun, chosen, "note", "Set the note of a trial", SetNote);
  AddCommand<TagFlags<AnnotatedTrial>>(noun, chosen, "tag", "Add and remove tags of a trial",
                                       ChangeTags);
}

}  // namespace attune::cli
