#include "server/store/format_time.h"
#include "server/store/tables/projection.h"

// Events of checkpoints.
namespace attune::server {

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const CheckpointSaved& fact) {
  const TrialId& trial = fact.attempt.trial;
  const CheckpointRef& checkpoint = fact.checkpoint;
  transaction.Run(
      "INSERT OR REPLACE INTO @checkpoints (sweep, trial, step, attempt, path, digest, bytes, time)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      trial.sweep.value, trial.number.value, checkpoint.step.value, fact.attempt.number,
      checkpoint.path, checkpoint.digest, fact.bytes, FormatTime(event.time));
  transaction.Run("UPDATE @trials SET checkpoint = ? WHERE sweep = ? AND number = ?",
                  checkpoint.path, trial.sweep.value, trial.number.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&,
                        const CheckpointPinned& fact) {
  const CheckpointId& id = fact.checkpoint;
  transaction.Run(
      "UPDATE @checkpoints SET pinned = ? WHERE sweep = ? AND trial = ? AND step = ? AND attempt = "
      "?",
      fact.pinned, id.trial.sweep.value, id.trial.number.value, id.step.value, id.attempt);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const CheckpointDropped& fact) {
  const CheckpointId& id = fact.checkpoint;
  transaction.Run(
      "UPDATE @checkpoints SET dropped = ?, reason = ?"
      " WHERE sweep = ? AND trial = ? AND step = ? AND attempt = ?",
      FormatTime(event.time), fact.reason, id.trial.sweep.value, id.trial.number.value,
      id.step.value, id.attempt);
  transaction.Run(
      "UPDATE @trials SET checkpoint ="
      " (SELECT path FROM @checkpoints AS c WHERE c.sweep = @trials.sweep AND c.trial = "
      "@trials.number"
      "  AND c.dropped IS NULL ORDER BY attempt DESC, step DESC LIMIT 1)"
      " WHERE sweep = ? AND number = ? AND checkpoint = ?",
      id.trial.sweep.value, id.trial.number.value, fact.path);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event& event,
                        const CheckpointRemoved& fact) {
  const CheckpointId& id = fact.checkpoint;
  transaction.Run(
      "UPDATE @checkpoints SET removed = ?"
      " WHERE sweep = ? AND trial = ? AND step = ? AND attempt = ?",
      FormatTime(event.time), id.trial.sweep.value, id.trial.number.value, id.step.value,
      id.attempt);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&,
                        const CheckpointStored& fact) {
  const CheckpointId& id = fact.checkpoint;
  transaction.Run(
      "UPDATE @checkpoints SET stored = ?"
      " WHERE sweep = ? AND trial = ? AND step = ? AND attempt = ? AND digest = ?",
      fact.address, id.trial.sweep.value, id.trial.number.value, id.step.value, id.attempt,
      fact.digest);
}

}  // namespace attune::server
