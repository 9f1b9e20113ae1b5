#include "server/http/routes/trials/trials.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "server/http/answers/render.h"
#include "server/http/routes/request/query.h"
#include "server/http/routes/trials/trial_token.h"
#include "server/http/transport/problem.h"

namespace attune::server {

Response Trials::List(const Request& request, const Target& target) {
  const auto size = IntegerQuery(request, "page_size", kTrialsPageMax, 1, kTrialsPageMax);
  if (!size.ok()) return Problem(size.error());
  auto order = ParseTrialOrder(request.Query("order_by").value_or(""));
  if (!order.ok()) return Problem(order.error());
  TrialQuery query{.order = *std::move(order), .limit = static_cast<int>(*size)};
  const std::string filter = request.Query("filter").value_or("");
  if (!filter.empty()) {
    auto parsed = ParseTrialFilter(filter);
    if (!parsed.ok()) return Problem(parsed.error());
    query.filter = *std::move(parsed);
  }
  const std::string of =
      ToString(target.sweep()) + "/trials" + (filter.empty() ? "" : "?" + filter);
  auto after = ParseTrialToken(of, query, request);
  if (!after.ok()) return Problem(after.error());
  query.after = *std::move(after);
  const auto page = reader_.Trials(target.sweep(), query);
  if (!page.ok()) return Problem(page.error());
  return Render(
      rest::TrialList{.trials = answers_.Trials(page->trials),
                      .next_page_token = page->next ? TrialToken(of, query, *page->next) : "",
                      .seq = static_cast<int64_t>(page->seq.value),
                      .total_size = page->total});
}

Response Trials::Get(const Request&, const Target& target) { return answers_.Trial(target.trial); }

Response Trials::Explain(const Request& request, const Target& target) {
  // 0 means the newest decision.
  const auto step = IntegerQuery(request, "step", 0, 0, std::numeric_limits<int64_t>::max());
  if (!step.ok()) return Problem(step.error());
  const auto asked = *step > 0 ? std::optional(Step(*step)) : std::nullopt;
  const auto explanation = reader_.Explain(target.trial, asked);
  if (!explanation.ok()) return Problem(explanation.error());
  if (asked && !*explanation)
    return Problem(rest::ProblemType::kNotFound, "there is no decision on trial " +
                                                     ToString(target.trial) + " at step " +
                                                     std::to_string(*step));
  const auto trial = reader_.Trial(target.trial);
  if (!trial.ok()) return Problem(trial.error());
  return Render(RenderExplanation(*trial, *explanation));
}

Response Trials::Environment(const Request& request, const Target& target) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  // 0 means the newest attempt.
  const auto attempt = IntegerQuery(request, "attempt", 0, 1, kMost);
  if (!attempt.ok()) return Problem(attempt.error());
  const auto asked = *attempt > 0 ? std::optional(static_cast<uint32_t>(*attempt)) : std::nullopt;
  const auto environment = reader_.Environment(target.trial, asked);
  if (!environment.ok()) return Problem(environment.error());
  return Render(RenderEnvironment(*environment));
}

Response Trials::Logs(const Request& request, const Target& target) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto trial = reader_.Trial(target.trial);
  if (!trial.ok()) return Problem(trial.error());
  if (trial->attempts == 0)
    return Problem(rest::ProblemType::kNotFound,
                   "trial " + ToString(target.trial) + " has not run yet: it has no logs");
  const auto attempt = IntegerQuery(request, "attempt", trial->attempts, 1, trial->attempts);
  if (!attempt.ok()) return Problem(attempt.error());
  const auto rank = IntegerQuery(request, "rank", 0, 0, std::numeric_limits<int>::max());
  if (!rank.ok()) return Problem(rank.error());
  const auto offset = IntegerQuery(request, "offset", -65'536, -kMost, kMost);
  if (!offset.ok()) return Problem(offset.error());
  const auto limit = IntegerQuery(request, "limit", 65'536, 1, kLogSliceMaxBytes);
  if (!limit.ok()) return Problem(limit.error());

  auto slice = backend_.ReadLog({target.trial, static_cast<uint32_t>(*attempt)},
                                static_cast<int>(*rank), *offset, static_cast<uint32_t>(*limit));
  if (!slice.ok()) return Problem(slice.error());
  Response response{.content_type = "text/plain; charset=utf-8"};
  response.Set("X-Log-Offset", std::to_string(slice->offset))
      .Set("X-Log-Size", std::to_string(slice->file_bytes))
      .Set("Cache-Control", "no-store");
  if (slice->gap_begin < slice->gap_end)
    response.Set("X-Log-Gap",
                 std::to_string(slice->gap_begin) + "-" + std::to_string(slice->gap_end));
  response.body = std::move(slice->data);
  return response;
}

Response Trials::Logged(const Request& request, const Target& target) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto after = IntegerQuery(request, "after", 0, 0, kMost);
  if (!after.ok()) return Problem(after.error());
  const auto limit = IntegerQuery(request, "limit", kLoggedDefault, 1, kLoggedMax);
  if (!limit.ok()) return Problem(limit.error());
  if (const auto trial = reader_.Trial(target.trial); !trial.ok()) return Problem(trial.error());
  const auto logged = reader_.Logged(target.trial, EventSeq(static_cast<uint64_t>(*after)),
                                     static_cast<int>(*limit));
  if (!logged.ok()) return Problem(logged.error());
  rest::LoggedList list;
  for (const LoggedRow& row : *logged) list.logged.push_back(RenderLogged(row));
  return Render(list);
}

}  // namespace attune::server
