#include "server/store/tables/activity.h"

#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/message_limits.h"
#include "server/store/format_time.h"
#include "server/store/json.h"
#include "server/store/row_json.h"

namespace attune::server {
namespace {

// An action of a user. `detail` depends on the action: the changes of an edit, the old and new note
// and tags, the configuration of an enqueued trial, the checkpoint that was pinned, or a reason.
struct Action {
  std::string_view name;
  std::string detail = {};
};

std::string CheckpointText(const CheckpointId& id) {
  return "checkpoint of step " + std::to_string(id.step.value) + ", attempt " +
         std::to_string(id.attempt);
}

// Nullopt for events that are not actions of users.
template <class T>
std::optional<Action> ActionOf(const T&) {
  return std::nullopt;
}
std::optional<Action> ActionOf(const SweepCreated& fact) { return Action{"create", fact.path}; }
std::optional<Action> ActionOf(const SweepPaused&) { return Action{"pause"}; }
std::optional<Action> ActionOf(const SweepResumed&) { return Action{"resume"}; }
std::optional<Action> ActionOf(const SweepEdited& fact) {
  std::string changes;
  for (const std::string& change : fact.changes) changes += (changes.empty() ? "" : ", ") + change;
  return Action{"edit", changes};
}
std::optional<Action> ActionOf(const SweepReopened& fact) { return Action{"reopen", fact.reason}; }
std::optional<Action> ActionOf(const SweepStopping& fact) {
  return Action{fact.outcome == SweepState::kKilled ? "kill" : "stop"};
}
std::optional<Action> ActionOf(const SweepAnnotated&) { return Action{"annotate"}; }
std::optional<Action> ActionOf(const SweepDeletionScheduled&) { return Action{"delete"}; }
std::optional<Action> ActionOf(const SweepUndeleted&) { return Action{"undelete"}; }
std::optional<Action> ActionOf(const TrialCreated& fact) {
  if (fact.origin != kEnqueued) return std::nullopt;
  return Action{"enqueue", Dump(sweepfile::ToJson(fact.config))};
}
std::optional<Action> ActionOf(const TrialReopened& fact) {
  return Action{fact.until.value > 0 ? "continue" : "retry", fact.reason};
}
std::optional<Action> ActionOf(const TrialAnnotated&) { return Action{"annotate"}; }
std::optional<Action> ActionOf(const TrialEnded& fact) {
  if (fact.state != TrialState::kKilled || fact.reason != kKilledByUser) return std::nullopt;
  return Action{"kill"};
}
std::optional<Action> ActionOf(const CheckpointPinned& fact) {
  return Action{fact.pinned ? "pin" : "unpin", CheckpointText(fact.checkpoint)};
}
std::optional<Action> ActionOf(const CheckpointDropped& fact) {
  return Action{"drop", CheckpointText(fact.checkpoint)};
}

const Annotation* AnnotationIn(const Fact& fact) {
  if (const auto* sweep = std::get_if<SweepAnnotated>(&fact)) return &sweep->annotation;
  if (const auto* trial = std::get_if<TrialAnnotated>(&fact)) return &trial->annotation;
  return nullptr;
}

// For example: tags best, lr (was none)
std::string ChangeText(const std::string& name, const std::string& now, const std::string& before) {
  return name + (now.empty() ? "none" : now) + " (was " + (before.empty() ? "none" : before) + ")";
}

std::string NoteText(const std::string& note) {
  return note.empty() ? "" : '"' + CutEnd(note, kActivityNoteBytes) + '"';
}

std::string TagsText(const std::vector<std::string>& tags) {
  std::string text;
  for (const std::string& tag : tags) text += (text.empty() ? "" : ", ") + tag;
  return text;
}

// The changes that an annotation makes. REQUIRES: the tables have the values before it.
std::string AnnotationText(sqlite::Transaction& transaction, const Fact& fact,
                           const Annotation& annotation) {
  const std::string columns =
      "SELECT note, (SELECT group_concat(value, ', ') FROM json_each(iif(json_valid(tags), tags,"
      " '[]'))) FROM ";
  const SweepId sweep = *SweepOf(fact);
  const auto trial = TrialOf(fact);
  sqlite::Connection& connection = transaction.connection();
  sqlite::Rows rows = trial ? connection.Query(columns + "@trials WHERE sweep = ? AND number = ?",
                                               sweep.value, trial->number.value)
                            : connection.Query(columns + "@sweeps WHERE sweep = ?", sweep.value);
  const bool known = rows.Next();
  if (!rows.status().ok()) transaction.Fail(rows.status().error());
  const std::string note = known ? std::string(rows.Text(0)) : "";
  const std::string tags = known ? rows.OptionalText(1).value_or("") : "";
  std::string text;
  if (annotation.tags) text = ChangeText("tags ", TagsText(*annotation.tags), tags);
  if (annotation.note)
    text += (text.empty() ? "" : "; ") +
            ChangeText("note ", NoteText(*annotation.note), NoteText(note));
  return text;
}

}  // namespace

void AddActivity(sqlite::Transaction& transaction, const Event& event) {
  if (event.actor == kService) return;
  std::optional<Action> action = std::visit([](const auto& fact) { return ActionOf(fact); },
                                            static_cast<const AnyFact&>(event.fact));
  if (!action) return;
  if (const Annotation* annotation = AnnotationIn(event.fact))
    action->detail = AnnotationText(transaction, event.fact, *annotation);
  std::optional<uint32_t> trial;
  if (const auto id = TrialOf(event.fact)) trial = id->number.value;
  transaction.Run(
      "INSERT INTO @activity (seq, sweep, trial, time, actor, action, detail)"
      " VALUES (?, ?, ?, ?, ?, ?, ?)",
      event.seq.value, SweepOf(event.fact)->value, trial, FormatTime(event.time), event.actor,
      action->name, action->detail);
}

}  // namespace attune::server
