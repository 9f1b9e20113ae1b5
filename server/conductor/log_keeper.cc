#include "server/conductor/log_keeper.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "logging/log.h"

namespace attune::server {

std::string FindRestoreReason(const State& state, const std::optional<LogMark>& mark) {
  if (!mark) {
    // A new log has neither a mark nor an identity.
    return state.parts.empty() ? "" : "the data folder has no record of its newest event";
  }
  if (mark->identity == LogIdentity(0)) return "`attune db restore` has replaced the database";
  const bool is_known =
      std::ranges::find(state.parts, mark->identity, &LogPart::identity) != state.parts.end();
  if (!is_known) return "the data folder contained another log before";
  if (mark->identity == IdentityOf(state) && mark->seq > state.last_seq)
    return "the data folder contained event " + std::to_string(mark->seq.value) +
           ", but the log ends with event " + std::to_string(state.last_seq.value);
  return "";
}

void LogKeeper::OnStarted(const Brain& brain) {
  const State& state = brain.state();
  const std::optional<LogMark> mark = marks_.Read();
  identity_ = IdentityOf(state);
  durable_ = state.last_seq;
  started_ = true;
  std::string reason = FindRestoreReason(state, mark);
  if (identity_ == LogIdentity(0)) {
    reason_ = std::move(reason);
    return Identify("");
  }
  if (!reason.empty()) return Identify(std::move(reason));
  WriteMark();
}

// The old mark stays until the new identity is durable, because it is the reason for the new
// identity.
void LogKeeper::Identify(std::string reason) {
  wanted_ = IdentifyLog{identity_, make_identity_(), std::move(reason)};
  Submit();
}

void LogKeeper::Submit() {
  is_refused_ = false;
  conductor_.Submit(*wanted_, [this](const auto& identified) { is_refused_ = !identified.ok(); });
}

void LogKeeper::OnState(EventSeq durable, const Status& writable) {
  durable_ = durable;
  if (!started_) return;
  if (wanted_ && is_refused_ && writable.ok()) Submit();
  if (!wanted_) WriteMark();
}

void LogKeeper::OnDurable(std::span<const Event> events, const Brain&) {
  for (const Event& event : events) {
    const auto* identified = std::get_if<LogIdentified>(&event.fact);
    if (identified == nullptr) continue;
    if (!identified->reason.empty())
      logging::Warn(
          "{}: the server treats this log as a restored backup and gives it a new identity",
          identified->reason);
    identity_ = identified->identity;
    wanted_.reset();
    if (!reason_.empty()) return Identify(std::exchange(reason_, ""));
    WriteMark();
  }
}

void LogKeeper::WriteMark() { marks_.Write({.identity = identity_, .seq = durable_}); }

}  // namespace attune::server
