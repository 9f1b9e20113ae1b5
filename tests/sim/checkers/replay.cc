#include "tests/sim/checkers/replay.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/result.h"
#include "core/brain/audit.h"
#include "core/state/snapshot.h"
#include "tests/sim/algorithms.h"
#include "tests/sim/checkers/describe.h"
#include "tests/sim/service/decider.h"

namespace attune::sim {
namespace {

Reachable ReachesNobody() {
  return [](const std::string&) { return false; };
}

bool HasDeletedSweep(const std::vector<Event>& log) {
  return std::ranges::any_of(
      log, [](const Event& event) { return std::holds_alternative<SweepDeleted>(event.fact); });
}

void CheckStates(const World& world, const server::EventStore& store, Variant variant,
                 Findings& findings) {
  const Algorithms& algorithms = AlgorithmsFor(variant);
  const std::string live = SaveState(*world.state());
  Brain stored(algorithms, ReachesNobody());
  const Status read = store.Read(EventSeq{0}, [&](const Event& event) { stored.Replay(event); });
  if (!read.ok()) findings.Report("the log cannot be read: " + read.error().message);
  if (SaveState(stored.state()) != live)
    findings.Report("the replayed log gives a state that differs from the server's");
  Brain replayed(algorithms, ReachesNobody());
  std::map<std::pair<SweepId, uint64_t>, EndedSweepData>
      ended;  // parts of all sweeps that ever ended
  for (const Event& event : world.log()) {
    replayed.Replay(event);
    if (!std::holds_alternative<SweepEnded>(event.fact)) continue;
    for (EndedSweepData& part : AllEndedSweepData(replayed.state()))
      ended.insert({{part.sweep, part.mark}, std::move(part)});
  }
  if (SaveState(replayed.state()) != live)
    findings.Report("the replayed log with erased events gives a different state");
  if (world.snapshot().empty()) return;

  Brain restored(algorithms, ReachesNobody());
  if (const Status loaded = restored.Load(world.snapshot()); !loaded.ok())
    return findings.Report("a snapshot cannot be read: " + loaded.error().message);
  for (size_t i = world.snapshot_seq().value; i < world.log().size(); ++i) {
    if (const auto missing = MissingData(restored.state(), world.log()[i])) {
      const auto part = ended.find({missing->sweep, missing->mark});
      if (part == ended.end() || !restored.RestoreEndedSweep(part->second).ok())
        return findings.Report("a part that a snapshot refers to, of sweep " +
                               ToString(missing->sweep) + ", does not match the log");
    }
    restored.Replay(world.log()[i]);
  }
  if (SaveState(restored.state()) != live)
    findings.Report(
        "a snapshot and the events after it give a state that differs from the server's");
}

void CheckDecisions(const World& world, Variant variant, Findings& findings) {
  std::map<std::string, Reach> reach;
  const Reachable reachable = [&](const std::string& executor) {
    const auto known = reach.find(executor);
    return known == reach.end() ? Reach(false) : known->second;
  };
  const auto decider = MakeDecider(variant, reachable);
  size_t next = 0;
  for (const Input& input : world.inputs()) {
    reach = input.reach;
    std::vector<Event> events;
    if (input.command) {
      auto decided = decider->Execute(*input.command, input.now, "");
      if (!decided.ok())
        return findings.Report("a brain that never crashed refuses a command: " +
                               decided.error().message);
      events = std::move(*decided);
    } else {
      events = decider->Advance(input.now).events;
      const State& state = decider->brain().state();
      if (variant == Variant::kNone &&
          !attune::Advance(state, reachable, std::max(input.now, state.last_time)).empty())
        return findings.Report("a brain that checks everything starts more after event " +
                               std::to_string(state.last_seq.value));
    }
    for (const Event& event : events) {
      const std::string derived = Describe(event);
      const std::string logged =
          next < world.log().size() ? Describe(world.log()[next]) : "nothing";
      if (derived != logged)
        return findings.Report("a brain that never crashed decides differently:\n  " + derived +
                               "\n  instead of\n  " + logged);
      ++next;
    }
  }
  if (next != world.log().size()) findings.Report("a brain that never crashed makes fewer events");
}

// Audits the whole log, and the stored log, which lacks erased events.
void CheckAudit(const World& world, const server::EventStore& store, Variant variant,
                Findings& findings) {
  Auditor auditor(AlgorithmsFor(variant));
  for (const Event& event : world.log()) {
    if (auto fault = auditor.Next(event)) return findings.Report("the auditor: " + *fault);
  }
  if (!HasDeletedSweep(world.log())) return;
  Auditor stored_auditor(AlgorithmsFor(variant));
  std::optional<std::string> fault;
  static_cast<void>(store.Read(EventSeq{0}, [&](const Event& event) {
    if (!fault) fault = stored_auditor.Next(event);
  }));
  if (fault) findings.Report("the auditor, without erased events: " + *fault);
}

}  // namespace

void CheckReplay(const World& world, const server::EventStore& store, Variant variant,
                 Findings& findings) {
  CheckStates(world, store, variant, findings);
  CheckDecisions(world, variant, findings);
  CheckAudit(world, store, variant, findings);
}

}  // namespace attune::sim
