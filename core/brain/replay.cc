#include "core/brain/replay.h"

#include <string>

namespace attune {

Status CanReplay(const Algorithms& known, const Event& event) {
  const auto* created = std::get_if<SweepCreated>(&event.fact);
  if (created == nullptr) return {};
  SweepSpec spec = created->spec;
  known.Complete(spec);
  const auto named = [&](const Error& error) {
    return Error{error.code, "sweep " + ToString(created->sweep) +
                                 " cannot be decided again: " + error.message};
  };
  if (const auto searcher = known.MakeSearcher(spec); !searcher.ok())
    return named(searcher.error());
  if (const auto scheduler = known.MakeScheduler(spec); !scheduler.ok())
    return named(scheduler.error());
  return {};
}

}  // namespace attune
