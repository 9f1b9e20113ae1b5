#include "tests/sim/fake_server.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/brain/snapshot.h"
#include "server/rpc/convert.h"

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

void FakeServer::OnMessage(StreamId stream, v1::FromExecutor message) {
  if (!up_) return;
  if (message.has_hello()) On(stream, message.hello());
  if (message.has_facts()) On(stream, *message.mutable_facts());
  if (message.has_heartbeat()) On(stream, message.heartbeat());
  if (message.has_goodbye()) OnGoodbye(stream);
}

void FakeServer::OnClosed(StreamId stream) {
  const auto session = sessions_.find(stream);
  if (session == sessions_.end()) return;
  const auto current = streams_.find(session->second.executor);
  if (current != streams_.end() && current->second == stream) streams_.erase(current);
  sessions_.erase(session);
}

void FakeServer::On(StreamId stream, const v1::Hello& hello) {
  sessions_[stream] = {.executor = hello.name(), .instance = hello.instance()};
  heard_[hello.name()] = timeline_.now();
  Submit(JoinExecutor{.name = hello.name(),
                      .instance = hello.instance(),
                      .resources = server::FromProto(hello.resources())},
         [this, stream](const Answer& joined) {
           if (!joined.ok()) return Refuse(stream, v1::Refusal::BUSY);
           Greet(stream);
         });
}

void FakeServer::Refuse(StreamId stream, v1::Refusal::Code code) {
  v1::ToExecutor message;
  message.mutable_refusal()->set_code(code);
  network_->Send(stream, std::move(message));
  network_->CloseByServer(stream);
  OnClosed(stream);
}

void FakeServer::Greet(StreamId stream) {
  const auto found = sessions_.find(stream);
  if (found == sessions_.end()) return;  // it has gone already
  Session& session = found->second;
  v1::ToExecutor message;
  message.mutable_welcome()->set_lease_ttl_ms(kLeaseUs / 1000);
  message.mutable_welcome()->set_heartbeat_ms(kHeartbeatUs / 1000);
  network_->Send(stream, std::move(message));
  const auto earlier = streams_.find(session.executor);
  if (earlier != streams_.end() && earlier->second != stream) {
    const StreamId old = earlier->second;
    if (sessions_.at(old).instance != session.instance) {
      Refuse(old, v1::Refusal::SUPERSEDED);
    } else {
      network_->CloseByServer(old);
      OnClosed(old);
    }
  }
  streams_[session.executor] = stream;
  session.joined = true;
  SendDesired(stream, session);
  Wake(0);
}

void FakeServer::On(StreamId stream, v1::Facts& facts) {
  const auto session = sessions_.find(stream);
  if (session == sessions_.end() || facts.facts().empty()) return;
  heard_[session->second.executor] = timeline_.now();
  const uint64_t last = facts.facts().rbegin()->seq();
  Item item;
  for (v1::Fact& fact : *facts.mutable_facts()) {
    if (auto command = server::FromProto(std::move(fact)))
      item.commands.push_back(*std::move(command));
  }
  if (variant_ == Variant::kAcksBeforeDurable) Acknowledge(stream, last);
  item.done = [this, stream, last](const Answer& recorded) {
    if (recorded.ok()) return Acknowledge(stream, last);
    Refuse(stream, v1::Refusal::BUSY);
  };
  Enqueue(std::move(item));
}

void FakeServer::Acknowledge(StreamId stream, uint64_t seq) {
  const auto session = sessions_.find(stream);
  if (session == sessions_.end()) return;
  session->second.acknowledged = seq;
  v1::ToExecutor message;
  message.mutable_ack()->set_seq(seq);
  network_->Send(stream, std::move(message));
}

void FakeServer::On(StreamId stream, const v1::Heartbeat& heartbeat) {
  const auto session = sessions_.find(stream);
  if (session == sessions_.end()) return;
  heard_[session->second.executor] = timeline_.now();
  v1::ToExecutor message;
  message.mutable_ack()->set_seq(session->second.acknowledged);
  message.mutable_ack()->set_heartbeat_us(heartbeat.time_us());
  network_->Send(stream, std::move(message));
}

void FakeServer::OnGoodbye(StreamId stream) {
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
  v1::ToExecutor message;
  v1::Desired& desired = *message.mutable_desired();
  desired = DesiredFor(session.executor);
  std::string serialised = desired.SerializeAsString();
  if (session.revision > 0 && serialised == session.last) return;
  session.last = std::move(serialised);
  desired.set_revision(++session.revision);
  network_->Send(stream, std::move(message));
}

void FakeServer::AddThoseResumedElsewhere(const std::string& executor, v1::Desired& desired) const {
  for (const auto& [id, sweep] : mind_->state().sweeps) {
    for (const TrialNumber number : sweep.live) {
      const Trial* trial = sweep.Find(number);
      if (!trial->live->resume || trial->checkpoints.empty() || !Wanted(*trial)) continue;
      const std::string& present = trial->live->ranks.front().executor;
      if (trial->checkpoints.back().executor != executor || present == executor) continue;
      const v1::Desired rightful = server::ToDesired(mind_->state(), present);
      for (const v1::Assignment& theirs : rightful.assignments()) {
        if (theirs.attempt().epoch() == trial->live->epoch.value)
          *desired.add_assignments() = theirs;
      }
    }
  }
}

v1::Desired FakeServer::DesiredFor(const std::string& executor) const {
  v1::Desired desired = server::ToDesired(mind_->state(), executor);
  if (variant_ == Variant::kResumesTwice) AddThoseResumedElsewhere(executor, desired);
  if (variant_ == Variant::kForgetsRemovals) desired.clear_removals();
  return desired;
}

}  // namespace attune::sim
