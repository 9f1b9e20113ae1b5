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

// The trials of a sweep without a program: asked for, and told about, from outside.
//
// A report waits for the conductor once and not twice where its attempt is one of those that were
// offered last: what has to be known of these is kept. It does not change while they are live, and
// whether they still are the brain says.
class AskTell {
 public:
  static constexpr size_t kOffersKept = 4'096;

  // Both outlive the object.
  AskTell(Backend& backend, Reader& reader) : backend_(backend), reader_(reader) {}

  Response Ask(const Request& request, const Target& target);
  Response Tell(const Request& request, const Target& target);

  // The answer to a tell; nullopt: there is nothing to say.
  using Reply = std::optional<rest::Verdict>;

 private:
  // What has to be known of a trial that is told about.
  struct Told {
    std::optional<Error> unknown;  // there is no such sweep
    bool external = false;
    std::vector<std::string> metrics;  // that a report has
    std::string time_attr;             // one of them, or empty
    std::optional<AttemptId> attempt;  // that is live
    Epoch epoch;                       // its
  };
  static Told About(const SweepSpec& spec);
  Told About(const TrialId& id);
  void Keep(const AttemptAssigned& fact, const SweepSpec& spec);
  std::optional<Told> Kept(const TrialId& id);

  // As RefuseReusedKey. While there are no tables, the brain knows the keys of a sweep that runs.
  std::optional<Response> RefuseReused(SweepId sweep, const std::string& request_key);

  // An ask, and how it was answered.
  struct Asked {
    AskTrial command;
    Backend::Answer led_to = std::vector<Event>();
    std::optional<rest::Offer> offer;
  };
  void Submit(Asked& asked, const std::string& actor);
  Backend::After OfferTo(Asked& asked);

  // The answer to an ask; nullopt: not yet known.
  using Next = Result<std::optional<rest::Offer>>;
  Next NextOf(const Asked& asked, bool patient);
  Next NothingNow(SweepId sweep, bool patient);
  Next Offered(const AttemptAssigned& fact);  // some time ago
  Next NoTrial(SweepId sweep, std::string reason);
  // What an answer says of a sweep. While there are no tables, the brain knows it of a sweep that
  // runs.
  struct Standing {
    std::string state;
    bool external = false;
  };
  Result<Standing> StandingOf(SweepId sweep);

  // Executes `asked` as well, unless the trial continues.
  Result<Reply> ReplyTo(const TrialId& trial, const std::optional<AttemptId>& live,
                        const TellBody& tell, std::optional<Asked>& asked,
                        const std::string& actor);
  // The reply to a tell about an attempt that has ended or never existed.
  Result<Reply> ToldBefore(const TrialId& trial, const TellBody& tell);

  Backend& backend_;
  Reader& reader_;

  std::mutex mutex_;
  std::map<TrialId, Told> kept_;    // guarded by mutex_, as is the next
  std::deque<TrialId> kept_first_;  // by age
};

}  // namespace attune::server
