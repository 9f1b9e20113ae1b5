// The part of Sessions that handles restored backups.

#include <utility>

#include "base/result.h"
#include "server/rpc/sessions.h"

namespace attune::server {

// Events that an executor has seen during this run of the server are always in the log.
std::string Sessions::FindMissingEvents(const v1::Hello& hello) const {
  const std::string who = "executor " + hello.name() + " has ";
  if (identity_ == LogIdentity(0)) return "";
  if (hello.identity() == identity_.value && hello.server_run() != options_.run &&
      hello.log_seq() > start_seq_.value)
    return who + "seen event " + std::to_string(hello.log_seq()) +
           ", but the log ended with event " + std::to_string(start_seq_.value);
  for (const SweepFiles& files : FromProto(hello.sweeps())) {
    if (files.identity == identity_ && files.sweep > last_sweep_)
      return who + "files of sweep " + ToString(files.sweep) + ", but the log has no such sweep";
  }
  return "";
}

void Sessions::IdentifyLog(SessionId id, std::string reason) {
  identifying_ = true;
  submissions_.Submit(attune::IdentifyLog{identity_, options_.new_identity(), std::move(reason)},
                      [this, id](const Result<std::span<const Event>>& identified) {
                        identifying_ = false;
                        Session* session = Find(id);
                        if (!identified.ok()) {
                          if (session != nullptr)
                            Refuse(*session, v1::Refusal::BUSY, identified.error().message);
                          return;
                        }
                        for (const Event& event : *identified) {
                          if (const auto* fact = std::get_if<LogIdentified>(&event.fact))
                            Apply(*fact);
                        }
                        if (session != nullptr) Join(id);
                      });
}

// Whether a backup was restored so recently that gangs which the log does not know may still run.
bool Sessions::WasRestored(const State& state, Time now) const {
  return state.parts.size() > 1 && now.us - state.parts.back().began.us <= options_.patience_us;
}

// After a restore, gangs that the log does not know may run. Nothing is placed until their
// executors have been told or have lost their leases.
void Sessions::Apply(const LogIdentified& identified) {
  if (identity_ == identified.identity) return;
  identity_ = identified.identity;
  if (!identified.reason.empty()) {
    restored_ = true;
    settled_ = false;
    settle_by_ = Time{now_.us + options_.patience_us};
  }
  // The identity is final only now. So only now may gangs start, which mark the folders of their
  // sweeps with it. And only now can executors report the end of gangs that ended in the lost part
  // of the log.
  if (std::exchange(awaits_identity_, false)) JoinWaiting();
}

// Asks the executor which checkpoints are gone, because the lost part of the log may have dropped
// them. It is sent before the Desired with the new identity, because an executor that knows the
// identity is not asked again.
void Sessions::SendInventory(Session& session, const Brain& brain) {
  for (v1::Inventory& inventory : ToInventory(brain.state(), session.hello.name())) {
    v1::ToExecutor message;
    *message.mutable_inventory() = std::move(inventory);
    session.link->Send(std::move(message));
  }
}

}  // namespace attune::server
