#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {

using attune::testing::ScratchFolder;

inline constexpr int64_t kSampleStart = 1'795'255'200'000'000;  // 2026-11-21T10:00:00Z

SweepSpec SampleSpec();
Config SampleConfig(double lr);

// A log with most kinds of facts: sweep s1 with trial 0 (failed once, then completed, the best),
// trial 1 (stopped), trial 2 (paused) and trial 3 (requeued, NaN and infinite metrics).
class SampleLog {
 public:
  SampleLog();

  const std::vector<Event>& events() const { return events_; }

  Event Next(Fact fact);

 private:
  void Add(Fact fact);
  void Assign(const AttemptId& attempt, uint64_t epoch, Step milestone,
              std::optional<CheckpointRef> resume = std::nullopt);
  void Report(const AttemptId& attempt, int64_t step, double accuracy, double seconds);

  uint64_t seq_ = 0;
  std::vector<Event> events_;
};

// Facts about trial s1/2 that the sample lacks, because they would end or branch it.
std::vector<Fact> OtherFacts();

}  // namespace attune::server
