#include <optional>
#include <string>

#include "server/store/json.h"
#include "server/store/tables/projection.h"

// The notes and tags of sweeps and trials.
namespace attune::server {
namespace {

// The column `tags`; nullopt: it does not change.
std::optional<std::string> TagsColumn(const Annotation& annotation) {
  if (!annotation.tags) return std::nullopt;
  return Dump(Json(*annotation.tags));
}

}  // namespace

void Projection::Handle(sqlite::Transaction& transaction, const Event&,
                        const SweepAnnotated& fact) {
  transaction.Run(
      "UPDATE @sweeps SET note = ifnull(?, note), tags = ifnull(?, tags) WHERE sweep = ?",
      fact.annotation.note, TagsColumn(fact.annotation), fact.sweep.value);
}

void Projection::Handle(sqlite::Transaction& transaction, const Event&,
                        const TrialAnnotated& fact) {
  transaction.Run(
      "UPDATE @trials SET note = ifnull(?, note), tags = ifnull(?, tags)"
      " WHERE sweep = ? AND number = ?",
      fact.annotation.note, TagsColumn(fact.annotation), fact.trial.sweep.value,
      fact.trial.number.value);
}

}  // namespace attune::server
