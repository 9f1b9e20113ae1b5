#include "tests/sim/asker.h"

#include <algorithm>

#include <utility>

#include "tests/sim/metrics.h"

namespace attune::sim {
namespace {

constexpr int kRemembered = 8;  // of its requests, the newest

constexpr int64_t kPauseUs = 7 * simulate::kSecondUs;  // between two questions
constexpr double kLeaseSteps = 20;                     // of the longest step

}  // namespace

void Asker::After(int64_t us, simulate::Timeline::Action action) {
  stage_.timeline.After(us, [this, life = life_, action = std::move(action)] {
    if (life == life_ && !gone_) action();
  });
}

void Asker::Begin() {
  for (const auto& [id, sweep] : stage_.books.sweeps) {
    if (sweep.key == sweep_key_) sweep_ = id;
  }
  if (sweep_.value > 0) return Ask();
  After(kPauseUs, [this] { Begin(); });
}

void Asker::Return() {
  if (!std::exchange(gone_, false)) return;
  ++life_;
  forgotten_ = asked_;
  Begin();
}

// What it has asked for before comes first: the answer may have been lost. What it had left when it
// lost interest, it has forgotten.
void Asker::Ask() {
  if (stage_.server.state() == nullptr) return After(kPauseUs, [this] { Ask(); });
  for (int i = std::max(forgotten_ + 1, asked_ - kRemembered); i <= asked_; ++i) {
    if (Adopt(Question(i).idempotency_key)) return Train();
  }
  const AskTrial question = Question(++asked_);
  stage_.people.Insist(question, [this, key = question.idempotency_key, life = life_](bool) {
    if (life != life_ || gone_) return;
    if (Adopt(key)) return Train();
    After(kPauseUs, [this] { Ask(); });
  });
}

AskTrial Asker::Question(int number) const {
  const Seconds lease(kLeaseSteps * static_cast<double>(stage_.step_us) / simulate::kSecondUs);
  return {sweep_, name_ + "-" + std::to_string(number), lease};
}

// Whether an attempt was given to the request of this key, and is live: the trial may have gone to
// another since.
bool Asker::Adopt(const std::string& key) {
  const State* state = stage_.server.state();
  const Sweep* sweep = state == nullptr ? nullptr : state->Find(sweep_);
  if (sweep == nullptr || !sweep->by_key.contains(key)) return false;
  const Trial* trial = sweep->Find(sweep->by_key.at(key));
  if (trial == nullptr || !trial->live) return false;
  const TrialBook* book = stage_.books.Find(trial->id);
  if (book == nullptr || !book->live || book->live->key != key) return false;
  attempt_ = trial->live->id;
  epoch_ = trial->live->epoch;
  worker_ = simulate::Worker(trial->last_step);
  orders_ = simulate::OrdersFor(*sweep, *trial);
  seconds_ = 0;
  return true;
}

void Asker::Train() {
  const int64_t us = stage_.random.Integer(stage_.step_us / 2, stage_.step_us);
  seconds_ += static_cast<double>(us) / simulate::kSecondUs;
  After(us, [this] { Tell(); });
}

// It waits for an answer every time.
void Asker::Tell() {
  orders_.yields = true;
  if (!worker_.waits()) worker_.Train(orders_);
  const Step step = worker_.step();
  const TrialBook* book = stage_.books.Find(attempt_.trial);
  Report report{.step = step, .seconds = Seconds(seconds_), .waits = true};
  report.metrics =
      MetricsAt(attempt_.trial, step, stage_.value(attempt_.trial, book->config, step));
  stage_.reality.Reported(epoch_, step);
  std::vector<Command> commands{RecordFact{epoch_, TrialReported{attempt_, std::move(report)}}};
  if (stage_.asks_with_tell) {
    AskTrial next = Question(asked_ + 1);
    next.after = attempt_;
    commands.emplace_back(std::move(next));
  }
  stage_.people.Insist(std::move(commands), [this, life = life_](bool) {
    if (life == life_ && !gone_) Told();
  });
}

void Asker::Told() {
  if (stage_.server.state() == nullptr) return After(kPauseUs, [this] { Told(); });
  const Trial* trial = Mine();
  if (trial == nullptr && stage_.asks_with_tell) {
    ++asked_;  // the next one has been asked for
    return Ask();
  }
  if (trial == nullptr) return After(kPauseUs, [this] { Ask(); });
  orders_ = simulate::OrdersFor(*stage_.server.state()->Find(sweep_), *trial);
  if (worker_.FollowOrders(orders_)) return Train();
  Tell();  // what it has said was lost
}

const Trial* Asker::Mine() const {
  const State* state = stage_.server.state();
  const Trial* trial = state == nullptr ? nullptr : state->Find(attempt_.trial);
  return trial != nullptr && trial->live && trial->live->epoch == epoch_ ? trial : nullptr;
}

}  // namespace attune::sim
