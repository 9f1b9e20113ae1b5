#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/simulate/timeline.h"
#include "core/base/random.h"
#include "server/store/event_store.h"
#include "tests/sim/mind.h"
#include "tests/sim/network.h"
#include "tests/sim/plan.h"

namespace attune::sim {

// From when the newest answered heartbeat was sent.
inline constexpr int64_t kLeaseUs = 20'000'000;
inline constexpr int64_t kHeartbeatUs = kLeaseUs / 4;
inline constexpr int64_t kPatienceUs = kLeaseUs * 3 / 2;  // of the server

// One thing the brain was asked, as it went into a batch that became durable: a command, or to
// advance.
struct Input {
  std::optional<Command> command;
  Time now;
  std::set<std::string> reachable;
};

// Told what the server does, to check it and to keep it.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  virtual void OnDurable(std::span<const Event> events) = 0;  // in the store
  virtual void OnInputs(std::vector<Input> inputs) = 0;       // of those events
  // What lay in memory when a process died with all of it durable, and what the next one made of
  // the log: the same state, as bytes.
  virtual void OnRecovered(const std::string& before, const std::string& after) = 0;
};

// The server's process: the rules of server/conductor and server/rpc, without threads and gRPC. It
// can die between any two of its moves.
class FakeServer final : public ServerEnd {
 public:
  using Answer = Result<std::span<const Event>>;
  using Done = std::function<void(const Answer&)>;  // never called if the server dies before

  FakeServer(simulate::Timeline& timeline, RandomStream& random, const FaultRates& faults,
             ServerObserver& observer, server::EventStore& store, Variant variant)
      : timeline_(timeline),
        random_(random),
        faults_(faults),
        observer_(observer),
        store_(store),
        variant_(variant) {}

  void SetNetwork(Network& network) { network_ = &network; }

  void Start();  // a new process, from the log
  // Dies at one of the next moves that it makes; comes back later.
  void CrashSoon();
  bool up() const { return up_; }

  // Not answered when the server is away.
  void Submit(Command command, Done done);
  // The state that is durable; null when the server is away.
  const State* state() const { return up_ ? &mind_->state() : nullptr; }
  Time WallClock() const { return Time{kEpochUs + timeline_.now().us + clock_offset_us_}; }

  void OnMessage(StreamId stream, v1::FromExecutor message) override;
  void OnClosed(StreamId stream) override;

 private:
  static constexpr int64_t kEpochUs = 1'700'000'000'000'000;

  struct Item {
    std::vector<Command> commands;
    Done done;
  };
  struct Session {
    std::string executor;
    std::string instance;
    bool joined = false;  // it may be told what to run
    bool leaving = false;
    uint64_t acknowledged = 0;
    uint64_t revision = 0;
    std::string last;  // that it was told to run, serialised
  };
  enum class Point { kBeforeAppend, kAfterAppend, kAfterAnswers, kBetweenBatches };

  void On(StreamId stream, const v1::Hello& hello);
  void On(StreamId stream, v1::Facts& facts);
  void On(StreamId stream, const v1::Heartbeat& heartbeat);
  void OnGoodbye(StreamId stream);
  void Greet(StreamId stream);
  void Refuse(StreamId stream, v1::Refusal::Code code);
  void Acknowledge(StreamId stream, uint64_t seq);
  void CheckLeases();
  void SendDesired(StreamId stream, Session& session);
  v1::Desired DesiredFor(const std::string& executor) const;
  void AddThoseResumedElsewhere(const std::string& executor, v1::Desired& desired) const;

  void Enqueue(Item item);
  void Wake(int64_t after_us);
  void Handle();
  std::optional<Error> Decide(const std::vector<Command>& commands, std::vector<Event>& events);
  void FollowUp(std::vector<Event>& events);
  void LookAgain();
  bool DiesAt(Point point);
  void Die();
  Status Recover(bool use_snapshot);
  void Probe();
  void Publish();
  std::set<std::string> Reachable() const;
  void After(int64_t us, simulate::Timeline::Action action);  // unless this process is gone by then

  simulate::Timeline& timeline_;
  RandomStream& random_;
  const FaultRates& faults_;
  ServerObserver& observer_;
  server::EventStore& store_;
  const Variant variant_;
  Network* network_ = nullptr;

  bool up_ = false;
  uint64_t process_ = 0;
  int64_t clock_offset_us_ = 0;
  std::optional<Point> dies_at_;

  std::unique_ptr<Mind> mind_;
  std::optional<Error> stalled_;
  std::vector<Item> queue_;
  std::vector<Input> inputs_;  // of the batch being decided
  bool awake_ = false;         // a batch is about to be handled
  std::optional<Time> due_;    // when it will look again by itself

  std::map<StreamId, Session> sessions_;
  std::map<std::string, StreamId> streams_;  // by executor, once it has joined
  std::map<std::string, Time> heard_;
  Time started_;

  std::string before_;     // the state at the last death, if all of it was durable
  EventSeq snapshot_seq_;  // of the newest one
  EventSeq durable_;
};

}  // namespace attune::sim
