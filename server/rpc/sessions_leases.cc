// The leases of executors, and which executors are reachable.

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "logging/log.h"
#include "server/rpc/sessions.h"

namespace attune::server {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

}  // namespace

void Sessions::OnTime(Time now) {
  now_ = now;
  for (auto& [id, session] : sessions_) {
    const bool silent = session.stage == Stage::kBeforeHello && !session.closing;
    if (silent && now.us - session.opened.us > options_.patience_us) Close(session);
    if (session.welcomed && !session.closing && !options_.may_join(session.hello.token()))
      Refuse(session, v1::Refusal::BAD_TOKEN, "the token of this executor was revoked");
  }
  if (!started_) return;
  std::erase_if(executors_, [&](const auto& entry) {
    const Executor& executor = entry.second;
    return executor.lost && executor.session == 0 && IsSilent(executor);
  });
  std::vector<std::string> silent;
  for (const auto& [name, executor] : executors_) {
    if (!executor.lost && !executor.losing && IsSilent(executor)) silent.push_back(name);
  }
  for (const std::string& name : silent) {
    Executor& executor = executors_.at(name);
    if (Session* session = Find(executor.session)) Close(*session);
    executor.losing = true;
    submissions_.Submit(LoseExecutor{name, executor.incarnation,
                                     "nothing was heard from it for " +
                                         std::to_string(options_.patience_us / kSecondUs) + " s"},
                        [this, name](const auto& lost) {
                          const auto found = executors_.find(name);
                          if (!lost.ok() && found != executors_.end()) found->second.losing = false;
                        });
  }
  if (now > settle_by_ && !std::exchange(settled_, true)) submissions_.CheckForStarts();
}

bool Sessions::AllReconnected() const {
  return std::ranges::all_of(executors_, [this](const auto& entry) {
    return entry.second.lost || Connected(entry.first);
  });
}

void Sessions::AllowStartsIfReconnected() {
  if (!started_ || settled_ || restored_ || !AllReconnected()) return;
  settled_ = true;
  submissions_.CheckForStarts();
}

bool Sessions::Connected(const std::string& executor) const {
  const auto found = executors_.find(executor);
  if (found == executors_.end()) return false;
  const auto session = sessions_.find(found->second.session);
  return session != sessions_.end() && !session->second.closing &&
         session->second.stage == Stage::kJoined;
}

std::optional<Sessions::Pulse> Sessions::PulseOf(const std::string& executor, Time now) const {
  const auto found = executors_.find(executor);
  if (found == executors_.end() || !Connected(executor)) return std::nullopt;
  Pulse pulse = found->second.pulse;
  pulse.silent_us = std::max<int64_t>(now.us - found->second.heard.us, 0);
  return pulse;
}

Reach Sessions::ReachOf(const std::string& executor) const {
  if (!settled_ || !Connected(executor)) return false;
  return {true, !refused_ && !sessions_.at(executors_.at(executor).session).leaving};
}

ExecutorLink* Sessions::LinkOf(const std::string& executor) {
  if (!Connected(executor)) return nullptr;
  return sessions_.at(executors_.at(executor).session).link;
}

}  // namespace attune::server
