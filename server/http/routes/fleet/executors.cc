#include "server/http/routes/fleet/executors.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "server/http/answers/answers.h"
#include "server/http/answers/effects.h"
#include "server/http/answers/refusal.h"
#include "server/http/answers/render.h"
#include "server/http/routes/request/body.h"
#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"

namespace attune::server {

Response Executors::List(const Request&, const Target&) {
  rest::ExecutorList list;
  for (const auto& status : backend_.Executors()) list.executors.push_back(RenderExecutor(status));
  return Render(list);
}

Response Executors::Demands(const Request&, const Target&) {
  std::vector<Demand> demands;
  backend_.QueryState([&](const Brain& brain) { demands = brain.Demands(); });
  rest::DemandList list;
  for (const Demand& demand : demands) list.demand.push_back(RenderDemand(demand));
  return Render(list);
}

Response Executors::Queue(const Request& request, const Target&) {
  const auto size = IntegerQuery(request, "page_size", kQueuePageDefault, 1, kQueuePageMax);
  if (!size.ok()) return Problem(size.error());
  const auto from = ParsePageToken("queue", request);
  if (!from.ok()) return Problem(from.error());
  const auto first = static_cast<size_t>(from->value_or(0));
  rest::Queue page;
  backend_.QueryState([&](const Brain& brain) {
    const GangQueue queue = brain.Queue(first, static_cast<size_t>(*size));
    page.total_size = queue.total;
    for (size_t i = 0; i < queue.gangs.size(); ++i)
      page.gangs.push_back(RenderQueued(queue.gangs[i], *brain.state().Find(queue.gangs[i].sweep),
                                        first + i + 1, brain.state().last_time));
  });
  const size_t next = first + page.gangs.size();
  if (next < kQueueEntriesMax && std::cmp_less(next, page.total_size) && !page.gangs.empty())
    page.next_page_token = PageToken("queue", next);
  return Render(page);
}

Response Executors::Drain(const Request& request, const Target& target) {
  const auto body = ReadDrain(request.body, target.executor);
  if (!body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(*body.value, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  int64_t running = 0;
  int64_t leaving = 0;
  backend_.QueryState([&](const Brain& brain) {
    const auto executor = brain.state().executors.find(target.executor);
    if (executor == brain.state().executors.end()) return;
    for (const auto& [epoch, id] : executor->second.attempts) {
      const auto& yield = brain.state().Find(id)->yield_verdict;
      ++running;
      leaving += yield && yield->kind == VerdictKind::kPause ? 1 : 0;
    }
  });
  const int64_t staying = running - leaving;
  std::string effect = "nothing starts there until it is resumed";
  if (leaving > 0) effect += "; " + Plural(leaving, "trial") + " will save a checkpoint and leave";
  if (staying > 0) effect += "; " + Plural(staying, "trial") + " will finish there";
  if (staying > 0 && body.value->now) effect += ", because they cannot resume elsewhere";
  return Answer(target.executor, effect);
}

Response Executors::Resume(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(ResumeExecutor{target.executor}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  return Answer(target.executor, events->empty() ? "it was not drained, quarantined or excluded"
                                                 : "trials start there again");
}

Response Executors::Answer(const std::string& name, const std::string& effect) {
  for (const auto& executor : backend_.Executors()) {
    if (executor.name != name) continue;
    return Render(rest::SteeredExecutor{{RenderExecutor(executor)}, effect}, kAccepted);
  }
  return Problem(rest::ProblemType::kNotFound,
                 "executor " + name + " is gone");  // it was forgotten meanwhile
}

}  // namespace attune::server
