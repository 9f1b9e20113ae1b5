#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/log/event.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

// For each trial, the configurations and gangs with which its weights were trained, one after
// another. The list follows the trials whose checkpoints the weights come from.
class Lineages {
 public:
  struct Part {
    Config config;
    TrialNumber trial;  // the trial that trained with it
    uint32_t attempt = 0;
    int workers = 1;
    std::optional<CheckpointId> checkpoint;  // from which it began; nullopt: none, or not known
  };
  using Lineage = std::map<Step, Part>;  // by first step; the first is step 0

  // REQUIRES: gets the events of one sweep in order, each once. Only those of
  // Reader::EventSelection::kLineages matter.
  void Observe(const Event& event);

  // Returns the lineage of a trial. REQUIRES: the trial has been created.
  Lineage LineageOf(TrialNumber trial) const;

 private:
  // Lineages share their beginnings. Each is a chain of links that is followed from its end.
  struct Link {
    Step from;
    Part part;
    int before;  // index of the previous link; kNone: none
  };
  static constexpr int kNone = -1;

  void Clone(TrialNumber trial, const CheckpointId& donor, const Config& config);
  void Resume(Part part, Step from);
  int Add(Link link);

  std::vector<Link> links_;
  std::map<TrialNumber, int> now_;
  // the link at the start of each attempt
  std::map<std::pair<TrialNumber, uint32_t>, int> at_attempt_;
  std::map<TrialNumber, Config> configs_;  // configuration of the next attempt
};

// GET …/trials/{trial}/schedule: a trial's lineage, and the sweep file that trains it again.
class Schedules {
 public:
  // The reader must outlive the object.
  explicit Schedules(Reader& reader) : reader_(reader) {}
  Response Get(const Request& request, const Target& target);

 private:
  // Reads the sweep's events if it has clones, promotions or gangs that change their sizes. One
  // request at a time reads them. The others wait here, and not while they hold a connection to the
  // database.
  Result<Lineages::Lineage> LineageOf(const TrialRow& trial, const GangSpec& gang);

  Reader& reader_;
  std::mutex one_at_a_time_;
};

}  // namespace attune::server
