#include "core/state/replay.h"

#include <string>

#include "base/result.h"

namespace attune {

Status CanReplay(const Algorithms& known, const Event& event) {
  SweepSpec spec;
  if (const auto* created = std::get_if<SweepCreated>(&event.fact)) {
    spec = *created->spec;
  } else if (const auto* edited = std::get_if<SweepEdited>(&event.fact)) {
    spec = *edited->spec;
  } else {
    return {};
  }
  known.Complete(spec);
  const auto named = [&](const Error& error) {
    return Error{error.code, "sweep " + ToString(*SweepOf(event.fact)) +
                                 " cannot be replayed: " + error.message};
  };
  if (const auto searcher = known.MakeSearcher(spec); !searcher.ok())
    return named(searcher.error());
  if (const auto scheduler = known.MakeScheduler(spec); !scheduler.ok())
    return named(scheduler.error());
  return {};
}

}  // namespace attune
