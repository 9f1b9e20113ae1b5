#include "tests/sim/ask_tell_client.h"

#include <algorithm>

#include <utility>

#include "tests/sim/metrics.h"

namespace attune::sim {
namespace {

constexpr int kRetriedRequests = 8;  // number of newest requests whose answers may be lost

constexpr int64_t kPauseUs = 7 * simulate::kSecondUs;  // between two requests
constexpr double kLeaseSteps = 20;                     // lease, in durations of the longest step

}  // namespace

void AskTellClient::ScheduleAfter(int64_t us, simulate::Timeline::Action action) {
  context_.timeline.ScheduleAfter(us, [this, generation = generation_, action = std::move(action)] {
    if (generation == generation_ && !away_) action();
  });
}

void AskTellClient::Start() {
  for (const auto& [id, sweep] : context_.books.sweeps) {
    if (sweep.key == sweep_key_) sweep_ = id;
  }
  if (sweep_.value > 0) return Ask();
  ScheduleAfter(kPauseUs, [this] { Start(); });
}

void AskTellClient::ComeBack() {
  if (!std::exchange(away_, false)) return;
  ++generation_;
  forgotten_ = requests_;
  Start();
}

// Looks first for the trials of earlier requests, because their answers may have been lost.
// Requests from before it went away do not count.
void AskTellClient::Ask() {
  if (context_.server.state() == nullptr) return ScheduleAfter(kPauseUs, [this] { Ask(); });
  for (int i = std::max(forgotten_ + 1, requests_ - kRetriedRequests); i <= requests_; ++i) {
    if (AdoptAttempt(RequestFor(i).idempotency_key)) return Train();
  }
  const AskTrial request = RequestFor(++requests_);
  context_.people.SubmitUntilAnswered(
      request, [this, key = request.idempotency_key, generation = generation_](bool) {
        if (generation != generation_ || away_) return;
        if (AdoptAttempt(key)) return Train();
        ScheduleAfter(kPauseUs, [this] { Ask(); });
      });
}

AskTrial AskTellClient::RequestFor(int number) const {
  const Seconds lease(kLeaseSteps * static_cast<double>(context_.step_us) / simulate::kSecondUs);
  return {sweep_, name_ + "-" + std::to_string(number), lease};
}

// Takes over the attempt that the server gave to the request with this key. Returns false if there
// is none, or if the trial has another attempt by now.
bool AskTellClient::AdoptAttempt(const std::string& key) {
  const State* state = context_.server.state();
  const Sweep* sweep = state == nullptr ? nullptr : state->Find(sweep_);
  if (sweep == nullptr || !sweep->by_key.contains(key)) return false;
  const Trial* trial = sweep->Find(sweep->by_key.at(key));
  if (trial == nullptr || !trial->live) return false;
  const TrialBook* book = context_.books.Find(trial->id);
  if (book == nullptr || !book->live || book->live->key != key) return false;
  attempt_ = trial->live->id;
  epoch_ = trial->live->epoch;
  worker_ = simulate::Worker(trial->last_step);
  orders_ = simulate::OrdersFor(*sweep, *trial);
  trained_seconds_ = 0;
  return true;
}

void AskTellClient::Train() {
  const int64_t us = context_.random.Integer(context_.step_us / 2, context_.step_us);
  trained_seconds_ += static_cast<double>(us) / simulate::kSecondUs;
  ScheduleAfter(us, [this] { Report(); });
}

// Reports the next step. It waits for an answer to each report.
void AskTellClient::Report() {
  orders_.yields = true;
  if (!worker_.waits()) worker_.Train(orders_);
  const Step step = worker_.step();
  const TrialBook* book = context_.books.Find(attempt_.trial);
  attune::Report report{.step = step, .seconds = Seconds(trained_seconds_), .waits = true};
  report.metrics =
      MetricsAt(attempt_.trial, step, context_.value(attempt_.trial, book->config, step));
  context_.reality.OnReported(epoch_, step);
  std::vector<Command> commands{RecordFact{epoch_, TrialReported{attempt_, std::move(report)}}};
  if (context_.asks_with_tell) {
    AskTrial next = RequestFor(requests_ + 1);
    next.after = attempt_;
    commands.emplace_back(std::move(next));
  }
  context_.people.SubmitUntilAnswered(std::move(commands), [this, generation = generation_](bool) {
    if (generation == generation_ && !away_) HandleAnswer();
  });
}

void AskTellClient::HandleAnswer() {
  if (context_.server.state() == nullptr)
    return ScheduleAfter(kPauseUs, [this] { HandleAnswer(); });
  const Trial* trial = LiveTrial();
  if (trial == nullptr && context_.asks_with_tell) {
    ++requests_;  // the report also asked for the next trial
    return Ask();
  }
  if (trial == nullptr) return ScheduleAfter(kPauseUs, [this] { Ask(); });
  orders_ = simulate::OrdersFor(*context_.server.state()->Find(sweep_), *trial);
  if (worker_.FollowOrders(orders_)) return Train();
  Report();  // the report was lost
}

const Trial* AskTellClient::LiveTrial() const {
  const State* state = context_.server.state();
  const Trial* trial = state == nullptr ? nullptr : state->Find(attempt_.trial);
  return trial != nullptr && trial->live && trial->live->epoch == epoch_ ? trial : nullptr;
}

}  // namespace attune::sim
