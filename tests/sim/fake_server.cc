#include "tests/sim/fake_server.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/brain/snapshot.h"

namespace attune::sim {
namespace {

using simulate::kSecondUs;

constexpr int64_t kBatchUs = 3'000;  // at most, until the conductor looks at its queue
constexpr int64_t kProbeUs = kSecondUs / 2;
constexpr int64_t kDownUs = 40 * kSecondUs;  // at most, from a crash to the next start
constexpr uint64_t kSnapshotEvery = 40;      // events

}  // namespace

void FakeServer::After(int64_t us, simulate::Timeline::Action action) {
  timeline_.After(us, [this, process = process_, action = std::move(action)] {
    if (process == process_ && up_) action();
  });
}

// ---- the process ----------------------------------------------------------------------------

void FakeServer::Start() {
  ++process_;
  up_ = true;
  awake_ = false;
  dies_at_.reset();
  due_.reset();
  queue_.clear();
  sessions_.clear();
  streams_.clear();
  heard_.clear();
  started_ = timeline_.now();
  const Status recovered = Recover(random_.Uniform() < faults_.snapshot_used);
  ATTUNE_CHECK(recovered.ok());
  if (!before_.empty()) observer_.OnRecovered(before_, SaveState(mind_->state()));
  stalled_.reset();
  Wake(0);
  After(kLeaseUs / 3, [this] { CheckLeases(); });
}

Status FakeServer::Recover(bool use_snapshot) {
  mind_ = MakeMind(variant_, [this](const std::string& executor) {
    const auto stream = streams_.find(executor);
    return stream != streams_.end() && !sessions_.at(stream->second).leaving;
  });
  EventSeq from{0};
  if (use_snapshot) {
    const auto snapshot = store_.ReadSnapshot(durable_);
    if (!snapshot.ok()) return snapshot.error();
    if (*snapshot) {
      if (const Status loaded = mind_->Load((*snapshot)->bytes); !loaded.ok()) return loaded;
      from = (*snapshot)->seq;
    }
  }
  return store_.Read(from, [&](const Event& event) {
    if (variant_ == Variant::kForgetsRestart && event.seq == durable_ && event.seq.value > 1)
      return;
    mind_->Replay(event);
  });
}

void FakeServer::CrashSoon() {
  if (up_) dies_at_ = static_cast<Point>(random_.Integer(0, 3));
}

bool FakeServer::DiesAt(Point point) {
  if (dies_at_ != point) return false;
  Die();
  return true;
}

void FakeServer::Die() {
  const bool durable = mind_->state().last_seq == durable_;
  before_ = durable ? SaveState(mind_->state()) : "";
  up_ = false;
  ++process_;
  dies_at_.reset();
  network_->ServerDied();
  const int64_t jump = faults_.clock_jump_us;
  timeline_.After(random_.Integer(0, kDownUs), [this, jump] {
    clock_offset_us_ += random_.Integer(-jump, jump);
    Start();
  });
}

// ---- the conductor --------------------------------------------------------------------------

void FakeServer::Submit(Command command, Done done) {
  if (!up_) return;
  Item item{.done = std::move(done)};
  item.commands.push_back(std::move(command));
  Enqueue(std::move(item));
}

void FakeServer::Enqueue(Item item) {
  queue_.push_back(std::move(item));
  Wake(random_.Integer(0, kBatchUs));
}

void FakeServer::Wake(int64_t after_us) {
  if (std::exchange(awake_, true)) return;
  After(after_us, [this] {
    awake_ = false;
    Handle();
  });
}

std::optional<Error> FakeServer::Decide(const std::vector<Command>& commands,
                                        std::vector<Event>& events) {
  for (const Command& command : commands) {
    const Time now = WallClock();
    auto decided = mind_->Execute(command, now);
    if (!decided.ok()) return decided.error();
    if (!decided->empty()) inputs_.push_back({command, now, Reachable()});
    std::ranges::move(*decided, std::back_inserter(events));
  }
  return std::nullopt;
}

void FakeServer::FollowUp(std::vector<Event>& events) {
  const Time now = WallClock();
  std::vector<Event> following = mind_->Advance(now);
  if (!following.empty() || !events.empty()) inputs_.push_back({std::nullopt, now, Reachable()});
  std::ranges::move(following, std::back_inserter(events));
}

// Decides on a batch, appends it, and only then answers and publishes.
void FakeServer::Handle() {
  const uint64_t process = process_;
  const auto died = [&] { return process != process_; };
  std::vector<Item> items = std::exchange(queue_, {});
  std::vector<Event> events;
  struct Range {
    size_t begin = 0, end = 0;
    std::optional<Error> refused;
  };
  std::vector<Range> ranges(items.size());
  inputs_.clear();
  for (size_t i = 0; i < items.size(); ++i) {
    ranges[i].begin = events.size();
    ranges[i].refused = stalled_ ? stalled_ : Decide(items[i].commands, events);
    ranges[i].end = events.size();
  }
  if (!stalled_) FollowUp(events);
  if (DiesAt(Point::kBeforeAppend)) return;

  const auto answer = [&](const std::optional<Error>& failed) {
    for (size_t i = 0; i < items.size() && !died(); ++i) {
      if (!items[i].done) continue;
      if (failed) {
        items[i].done(*failed);
      } else if (ranges[i].refused) {
        items[i].done(*ranges[i].refused);
      } else {
        items[i].done(std::span<const Event>(events).subspan(ranges[i].begin,
                                                             ranges[i].end - ranges[i].begin));
      }
    }
  };
  const bool hasty = variant_ == Variant::kActsBeforeAppend;
  if (hasty) {
    answer(std::nullopt);
    Publish();
  }
  if (!events.empty()) {
    if (const Status written = store_.Append(events); !written.ok()) {
      stalled_ = written.error();
      const Status recovered = Recover(false);
      ATTUNE_CHECK(recovered.ok());
      After(kProbeUs, [this] { Probe(); });
      if (!hasty) answer(stalled_);
      return;
    }
    durable_ = events.back().seq;
    observer_.OnInputs(std::move(inputs_));
    observer_.OnDurable(events);
    if (durable_.value >= snapshot_seq_.value + kSnapshotEvery && faults_.snapshot_used > 0) {
      const Status saved = store_.SaveSnapshot(durable_, SaveState(mind_->state()));
      ATTUNE_CHECK(saved.ok());
      snapshot_seq_ = durable_;
    }
  }
  if (DiesAt(Point::kAfterAppend)) return;
  if (!hasty) answer(std::nullopt);
  if (died() || DiesAt(Point::kAfterAnswers)) return;
  if (!events.empty() && !hasty) Publish();
  if (DiesAt(Point::kBetweenBatches)) return;
  LookAgain();
}

// Time alone may make something follow.
void FakeServer::LookAgain() {
  const Time now = std::max(WallClock(), mind_->state().last_time);
  const auto due = Due(mind_->state(), now);
  if (!due || due == due_) return;
  due_ = due;
  After(std::max<int64_t>(1, due->us - WallClock().us), [this, due] {
    if (due_ != due) return;
    due_.reset();
    Wake(0);
  });
}

void FakeServer::Probe() {
  if (!store_.Probe().ok()) return After(kProbeUs, [this] { Probe(); });
  stalled_.reset();
  Wake(0);
}

std::set<std::string> FakeServer::Reachable() const {
  std::set<std::string> reachable;
  for (const auto& [executor, stream] : streams_) {
    if (!sessions_.at(stream).leaving) reachable.insert(executor);
  }
  return reachable;
}

// ---- executors ------------------------------------------------------------------------------

void FakeServer::OnMessage(StreamId stream, FromExecutor message) {
  if (!up_) return;
  std::visit([&](const auto& each) { On(stream, each); }, message);
}

void FakeServer::OnClosed(StreamId stream) {
  const auto session = sessions_.find(stream);
  if (session == sessions_.end()) return;
  const auto current = streams_.find(session->second.executor);
  if (current != streams_.end() && current->second == stream) streams_.erase(current);
  sessions_.erase(session);
}

void FakeServer::On(StreamId stream, const Hello& hello) {
  sessions_[stream] = {.executor = hello.name, .instance = hello.instance};
  heard_[hello.name] = timeline_.now();
  Submit(JoinExecutor{.name = hello.name, .instance = hello.instance, .resources = hello.resources},
         [this, stream](const Answer& joined) {
           if (!joined.ok()) {
             network_->Send(stream, ToExecutor(Refusal{}));
             network_->CloseByServer(stream);
             OnClosed(stream);
             return;
           }
           Greet(stream);
         });
}

void FakeServer::Greet(StreamId stream) {
  const auto found = sessions_.find(stream);
  if (found == sessions_.end()) return;  // it has gone already
  Session& session = found->second;
  network_->Send(stream, ToExecutor(Welcome{}));
  const auto earlier = streams_.find(session.executor);
  if (earlier != streams_.end() && earlier->second != stream) {
    const StreamId old = earlier->second;
    if (sessions_.at(old).instance != session.instance)
      network_->Send(old, ToExecutor(Refusal{.superseded = true}));
    network_->CloseByServer(old);
    OnClosed(old);
  }
  streams_[session.executor] = stream;
  session.joined = true;
  SendDesired(stream, session);
  Wake(0);
}

void FakeServer::On(StreamId stream, const Facts& facts) {
  const auto session = sessions_.find(stream);
  if (session == sessions_.end()) return;
  heard_[session->second.executor] = timeline_.now();
  Item item;
  for (const NumberedFact& fact : facts.facts) item.commands.push_back(fact.command);
  const uint64_t last = facts.facts.back().seq;
  if (variant_ == Variant::kAcksBeforeDurable) Acknowledge(stream, last);
  item.done = [this, stream, last](const Answer& recorded) {
    if (recorded.ok()) return Acknowledge(stream, last);
    network_->Send(stream, ToExecutor(Refusal{}));
    network_->CloseByServer(stream);
    OnClosed(stream);
  };
  Enqueue(std::move(item));
}

void FakeServer::Acknowledge(StreamId stream, uint64_t seq) {
  const auto session = sessions_.find(stream);
  if (session == sessions_.end()) return;
  session->second.acknowledged = seq;
  network_->Send(stream, ToExecutor(Ack{.seq = seq}));
}

void FakeServer::On(StreamId stream, const Heartbeat& heartbeat) {
  const auto session = sessions_.find(stream);
  if (session == sessions_.end()) return;
  heard_[session->second.executor] = timeline_.now();
  network_->Send(stream, ToExecutor(Ack{session->second.acknowledged, heartbeat.sent}));
}

void FakeServer::On(StreamId stream, const Goodbye&) {
  const auto session = sessions_.find(stream);
  if (session != sessions_.end()) session->second.leaving = true;
}

void FakeServer::CheckLeases() {
  After(kLeaseUs / 3, [this] { CheckLeases(); });
  const int64_t patience = variant_ == Variant::kGivesAwayEarly ? kLeaseUs / 2 : kPatienceUs;
  for (const auto& [name, executor] : mind_->state().executors) {
    if (executor.lost) continue;
    const auto heard = heard_.find(name);
    const Time last = heard == heard_.end() ? started_ : heard->second;
    if (timeline_.now().us - last.us <= patience) continue;
    if (const auto stream = streams_.find(name); stream != streams_.end()) {
      const StreamId silent = stream->second;
      network_->CloseByServer(silent);
      OnClosed(silent);
    }
    Submit(LoseExecutor{name, executor.incarnation, "nothing was heard from it"}, {});
  }
}

void FakeServer::Publish() {
  for (const auto& [executor, stream] : streams_) SendDesired(stream, sessions_.at(stream));
}

void FakeServer::SendDesired(StreamId stream, Session& session) {
  Desired desired = DesiredFor(session.executor);
  if (session.revision > 0 && desired.assignments == session.last.assignments &&
      desired.unwanted == session.last.unwanted && desired.removals == session.last.removals)
    return;
  session.last = desired;
  desired.revision = ++session.revision;
  network_->Send(stream, ToExecutor(std::move(desired)));
}

void FakeServer::AddThoseResumedElsewhere(const std::string& executor,
                                          std::vector<const Trial*>& wanted) const {
  for (const auto& [id, sweep] : mind_->state().sweeps) {
    for (const TrialNumber number : sweep.live) {
      const Trial* trial = sweep.Find(number);
      if (!trial->live->resume || trial->checkpoints.empty() || !Wanted(*trial)) continue;
      if (trial->checkpoints.back().executor == executor &&
          trial->live->ranks.front().executor != executor)
        wanted.push_back(trial);
    }
  }
}

Desired FakeServer::DesiredFor(const std::string& executor) const {
  const State& state = mind_->state();
  Desired desired;
  std::vector<const Trial*> wanted = WantedOn(state, executor);
  if (variant_ == Variant::kResumesTwice) AddThoseResumedElsewhere(executor, wanted);
  for (const Trial* trial : wanted) {
    const Sweep& sweep = *state.Find(trial->id.sweep);
    desired.assignments.push_back({.attempt = trial->live->id,
                                   .epoch = trial->live->epoch,
                                   .config = trial->config,
                                   .ranks = trial->live->ranks,
                                   .resume = trial->live->resume,
                                   .stall_timeout = sweep.spec.failure.stall_timeout,
                                   .orders = simulate::OrdersFor(sweep, *trial)});
  }
  if (const auto known = state.executors.find(executor); known != state.executors.end()) {
    for (const auto& [epoch, id] : known->second.attempts) {
      const Trial& trial = *state.Find(id);
      if (!Wanted(trial)) desired.unwanted.push_back({trial.live->id, epoch});
    }
  }
  const auto removals = state.removals.find(executor);
  if (removals != state.removals.end() && variant_ != Variant::kForgetsRemovals) {
    for (const auto& [id, path] : removals->second) desired.removals.push_back({id, path});
  }
  return desired;
}

}  // namespace attune::sim
