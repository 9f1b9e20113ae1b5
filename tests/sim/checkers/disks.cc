#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// A full disk is the failure of a host, and a trial that fills a disk is known as one that does.
class Disks final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    const auto* ended = std::get_if<AttemptEnded>(&event.fact);
    if (ended == nullptr || ended->outcome != Outcome::kFailed) return;
    const TrialBook* trial = books_.Find(ended->attempt.trial);
    if (trial == nullptr || !trial->live || trial->live->spans) return;
    // The lease may have been lost before anybody was told.
    const FailureKind kind = ended->failure.kind;
    if (kind == FailureKind::kLease) return;
    const Epoch epoch = trial->live->epoch;
    if (reality_.FoundDiskFull(epoch) && kind != FailureKind::kHost)
      Find(ToString(ended->attempt) + " could not save on a full disk, and is blamed for it");
    if (reality_.FilledDisk(epoch) && kind != FailureKind::kDisk)
      Find(ToString(ended->attempt) + " filled a disk, and that is not known of it");
  }
};

}  // namespace

std::unique_ptr<Checker> CheckDisks(const Evidence& evidence) {
  return std::make_unique<Disks>(evidence);
}

}  // namespace attune::sim
