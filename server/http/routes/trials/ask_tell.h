#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "rest/contract.h"
#include "server/http/backend/backend.h"
#include "server/http/routes/request/body.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

// Handles the trials of a sweep without a program: an external program asks for trials and tells
// their results.
//
// The data of the last offered attempts is cached, so a report for one of them needs only one round
// trip to the conductor, not two. The data does not change while an attempt is live. The brain
// checks whether it still is.
class AskTell {
 public:
  static constexpr size_t kOffersCached = 4'096;

  // Both arguments must outlive the object.
  AskTell(Backend& backend, Reader& reader) : backend_(backend), reader_(reader) {}

  Response Ask(const Request& request, const Target& target);
  Response Tell(const Request& request, const Target& target);

  // The answer to a tell; nullopt: an empty answer.
  using Reply = std::optional<rest::Verdict>;

 private:
  // The data that is needed to handle a tell for a trial.
  struct TellTarget {
    std::optional<Error> unknown;  // the error if there is no such sweep
    bool external = false;
    std::vector<std::string> metrics;  // metrics that a report must contain
    std::string time_attr;             // one of `metrics`, or empty
    std::optional<AttemptId> attempt;  // the live attempt
    Epoch epoch;                       // epoch of the live attempt
  };
  static TellTarget TargetOf(const SweepSpec& spec);
  TellTarget TargetOf(const TrialId& id);
  void CacheOffer(const AttemptAssigned& fact, const SweepSpec& spec);
  std::optional<TellTarget> FindCached(const TrialId& id);

  // Like RefuseReusedKey. While the tables are rebuilt, the brain knows the keys of a running
  // sweep.
  std::optional<Response> RefuseReused(SweepId sweep, const std::string& request_key);

  // An ask and its result.
  struct Asked {
    AskTrial command;
    Backend::Answer led_to = std::vector<Event>();
    std::optional<rest::Offer> offer;
  };
  void Submit(Asked& asked, const std::string& actor);
  Backend::Callback MakeOfferCallback(Asked& asked);

  // The answer to an ask; nullopt: not known yet.
  using Next = Result<std::optional<rest::Offer>>;
  Next AnswerAsk(const Asked& asked, bool patient);
  Next ExplainNoTrial(SweepId sweep, bool patient);
  Next RepeatOffer(const AttemptAssigned& fact);  // for an earlier ask
  Next NoTrial(SweepId sweep, std::string reason);
  // The state of a sweep for an answer. While the tables are rebuilt, the brain knows the state of
  // a running sweep.
  struct SweepStatus {
    std::string state;
    bool external = false;
  };
  Result<SweepStatus> FindSweepStatus(SweepId sweep);

  // Also executes `asked`, unless the trial continues.
  Result<Reply> ReplyTo(const TrialId& trial, const std::optional<AttemptId>& live,
                        const TellBody& tell, std::optional<Asked>& asked,
                        const std::string& actor);
  // The reply to a tell for an attempt that has ended or never existed.
  Result<Reply> FindEarlierReply(const TrialId& trial, const TellBody& tell);

  Backend& backend_;
  Reader& reader_;

  std::mutex mutex_;
  std::map<TrialId, TellTarget> cached_;  // guarded by mutex_, like the next
  std::deque<TrialId> cached_by_age_;     // oldest first
};

}  // namespace attune::server
