#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "server/conductor/submissions.h"

namespace attune::server {

// The newest event that was durable, kept outside the database (server/folder/log_mark.h). It tells
// a log that lacks events from one that has them all.
struct LogMark {
  LogIdentity identity;  // 0: `attune db restore` has replaced the database
  EventSeq seq;
};

// Where the mark is kept.
class LogMarks {
 public:
  virtual ~LogMarks() = default;
  virtual std::optional<LogMark> Read() = 0;    // nullopt: there is none, or it cannot be read
  virtual void Write(const LogMark& mark) = 0;  // quick; nobody is told of a failure
};

// Why a log with this state is a restored backup, given the mark; empty: it is not.
std::string WhyRestored(const State& state, const std::optional<LogMark>& mark);

// Gives the log its first identity, and another one after a backup was restored. Keeps the mark.
// A backup that was made before the log had an identity gets both, one after the other.
//
// Subscribe it before anything that submits commands: the identity precedes all that the process
// decides.
class LogKeeper : public Listener {
 public:
  // A new random identity, below 2^53.
  using MakeIdentity = std::function<LogIdentity()>;

  // All outlive the object.
  LogKeeper(Submissions& conductor, LogMarks& marks, MakeIdentity make_identity)
      : conductor_(conductor), marks_(marks), make_identity_(std::move(make_identity)) {}

  // Whether the log's first identity, or the one after a restore, is not durable yet. Call it on
  // the thread that calls the listeners.
  bool AwaitsIdentity() const { return wanted_.has_value(); }

  void OnStarted(const Brain& brain) override;
  void OnState(EventSeq durable, const Status& writable) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

 private:
  void Identify(std::string reason);
  void Submit();
  void WriteMark();

  Submissions& conductor_;
  LogMarks& marks_;
  const MakeIdentity make_identity_;
  std::optional<IdentifyLog> wanted_;  // not durable yet
  bool is_refused_ = false;            // by the store
  std::string reason_;  // why another identity follows the first one; empty: none does
  LogIdentity identity_;
  EventSeq durable_;
  bool started_ = false;
};

}  // namespace attune::server
