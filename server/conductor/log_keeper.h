#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "server/conductor/submissions.h"

namespace attune::server {

// The newest event that was durable. It is kept outside the database (server/folder/log_mark.h), so
// a log that lacks newer events can be recognised.
struct LogMark {
  LogIdentity identity;  // 0: `attune db restore` has replaced the database
  EventSeq seq;
};

// Reads and writes the mark.
class LogMarks {
 public:
  virtual ~LogMarks() = default;
  virtual std::optional<LogMark> Read() = 0;    // nullopt: it is absent or unreadable
  virtual void Write(const LogMark& mark) = 0;  // must be fast; failures are ignored
};

// Why a log with this state counts as a restored backup, given the mark. Empty: it is not restored.
std::string FindRestoreReason(const State& state, const std::optional<LogMark>& mark);

// Gives a log its first identity, and a new one after a backup was restored. Keeps the mark up to
// date. A restored backup without an identity gets both, one after the other.
//
// Subscribe it before anything that submits commands, because the identity must precede all
// decisions of the process.
class LogKeeper : public Listener {
 public:
  // A new random identity, below 2^53.
  using MakeIdentity = std::function<LogIdentity()>;

  // All arguments must outlive the object.
  LogKeeper(Submissions& conductor, LogMarks& marks, MakeIdentity make_identity)
      : conductor_(conductor), marks_(marks), make_identity_(std::move(make_identity)) {}

  // Whether the first identity, or the new one after a restore, is not durable yet. Call it on the
  // thread that calls the listeners.
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
  std::optional<IdentifyLog> wanted_;  // the new identity, until it is durable
  bool is_refused_ = false;            // the store refused it
  std::string reason_;  // why a new identity must follow the first one; empty: none must
  LogIdentity identity_;
  EventSeq durable_;
  bool started_ = false;
};

}  // namespace attune::server
