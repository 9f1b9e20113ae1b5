#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// A full disk counts as a failure of the host. A trial that fills a disk is recorded as the cause.
class Disks final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    const auto* ended = std::get_if<AttemptEnded>(&event.fact);
    if (ended == nullptr || ended->outcome != Outcome::kFailed) return;
    const TrialBook* trial = books_.Find(ended->attempt.trial);
    if (trial == nullptr || !trial->live || trial->live->spans) return;
    // The lease may have ended before the failure was reported.
    const FailureKind kind = ended->failure.kind;
    if (kind == FailureKind::kLease) return;
    const Epoch epoch = trial->live->epoch;
    if (reality_.FoundDiskFull(epoch) && kind != FailureKind::kHost)
      Report(ToString(ended->attempt) + " could not save on a full disk and is blamed for it");
    if (reality_.FilledDisk(epoch) && kind != FailureKind::kDisk)
      Report(ToString(ended->attempt) + " filled a disk but is not recorded as the cause");
  }
};

}  // namespace

std::unique_ptr<Checker> CheckDisks(const Evidence& evidence) {
  return std::make_unique<Disks>(evidence);
}

}  // namespace attune::sim
