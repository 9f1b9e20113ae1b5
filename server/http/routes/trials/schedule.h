#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log/event.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

// What the weights of each trial were trained with, one configuration after another, through the
// trials whose checkpoints they come from.
class Lineages {
 public:
  struct Part {
    Config config;
    TrialNumber trial;  // that trained so
  };
  using Lineage = std::map<Step, Part>;  // from the step on; the first one from step 0

  // REQUIRES: the events of one sweep, each once, in order, from the first on.
  void Observe(const Event& event);

  // REQUIRES: the trial has been created.
  Lineage Of(TrialNumber trial) const;

  // Kinds of events that say something of it; no other needs to be observed.
  static std::span<const std::string_view> Kinds();

 private:
  // Lineages have their beginnings in common: each is a chain of links, told from its end.
  struct Link {
    Step from;
    Part part;
    int before;  // kNone: it is the first
  };
  static constexpr int kNone = -1;

  void Clone(TrialNumber trial, const CheckpointId& donor, const Config& config);
  void GoOn(TrialNumber trial, Step from, const Config& config);
  int Add(Link link);

  std::vector<Link> links_;
  std::map<TrialNumber, int> now_;
  std::map<std::pair<TrialNumber, uint32_t>, int> at_attempt_;  // as each began
  std::map<TrialNumber, Config> configs_;                       // of the next attempt
};

// GET …/trials/{trial}/schedule: a trial's lineage, and the sweep file that trains it again. One at
// a time, since each reads the sweep's events; others wait for their turn here, not for the
// database.
class Schedules {
 public:
  // The reader outlives the object.
  explicit Schedules(Reader& reader) : reader_(reader) {}
  Response ScheduleOf(const Target& target);

 private:
  Reader& reader_;
  std::mutex one_at_a_time_;
};

}  // namespace attune::server
