#include "server/http/routes/sweeps/report.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/http/answers/curve_bytes.h"
#include "server/http/answers/report_file.h"
#include "server/http/transport/problem.h"
#include "server/store/format_time.h"
#include "server/store/json.h"

namespace attune::server {
namespace {

// What the page reads at once (web/src/live/sweep_live.ts, pages/views): up to kFewTrials it asks
// for all curves with kFinePoints, above for those of the best trials, and for all with fewer
// points.
constexpr int64_t kFewTrials = 300;
constexpr size_t kBestCurves = 100;
constexpr size_t kFinePoints = 256;
constexpr size_t kCoarsePoints = 64;
constexpr size_t kPointBytes = 5;  // of a packed point of a smooth curve; others have more
constexpr size_t kBranchesMax = 20'000;
constexpr size_t kActionsMax = 1'000;
constexpr size_t kLoggedPage = 10'000;

int64_t TrialsOf(const SweepRow& sweep) {
  int64_t count = 0;
  for (const auto& [state, trials] : sweep.trials) count += trials;
  return count;
}

// The metrics with curves: objectives first.
std::vector<std::string> MetricsWithCurves(const SweepRow& sweep, size_t most) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const Objective& objective : sweep.spec.objectives) add(objective.metric);
  if (const BestTrial* best = sweep.Best(); best != nullptr) {
    for (const auto& [name, value] : best->metrics) add(name);
  }
  for (const std::string& name : sweep.logged) add(name);
  if (names.size() > most) names.resize(most);
  return names;
}

// Asks for the answers that the page of a sweep reads, and adds them to a file.
class Recorder {
 public:
  struct Parts {
    Reader& reader;
    const Reports::Ask& ask;
    const Request& request;
    const SweepRow& sweep;
    const ReportLimits& limits;
    ReportFile& file;
  };
  explicit Recorder(const Parts& parts) : parts_(parts), path_("/sweeps/" + ToString(Id())) {}

  // Returns the answer of a request that failed; nullopt: the file is complete.
  std::optional<Response> Record() {
    const bool recorded = AddSweep() && AddTrialPages() && AddAllCurves();
    return recorded ? std::nullopt : std::move(failure_);
  }

 private:
  SweepId Id() const { return parts_.sweep.id; }

  bool Fail(Response failure) {
    failure_ = std::move(failure);
    return false;
  }

  // The body of the answer; nullopt: the request has failed.
  std::optional<std::string> Ask(const std::string& part, const ReportFile::Query& query) {
    // Like a viewer, because others than the user will open the file.
    Request request{.method = "GET",
                    .path = "/api/v1" + path_ + part,
                    .query = {query.begin(), query.end()},
                    .heavy = true,
                    .left = parts_.request.left};
    Response response = parts_.request.left.stop_requested()
                            ? Problem(Error{ErrorCode::kUnavailable, "the client has left"})
                            : parts_.ask(request);
    if (response.status == 200) return std::move(response.body);
    Fail(std::move(response));
    return std::nullopt;
  }

  std::string Pack(const std::string& part, const ReportFile::Query& query,
                   std::string_view body) const {
    return ReportFile::Pack(path_ + part, query, body);
  }

  bool Add(const std::string& part, const ReportFile::Query& query = {}) {
    const auto body = Ask(part, query);
    if (body) parts_.file.Add(Pack(part, query, *body));
    return body.has_value();
  }

  // Adds the pages of a list, until they have `most` items.
  bool AddPages(const std::string& part, const char* items, size_t most) {
    ReportFile::Query query;
    for (size_t count = 0; count < most;) {
      const auto body = Ask(part, query);
      if (!body) return false;
      parts_.file.Add(Pack(part, query, *body));
      const Json page = Json::parse(*body);
      count += page.at(items).size();
      query["page_token"] = page.at("next_page_token").get<std::string>();
      if (query["page_token"].empty()) break;
    }
    return true;
  }

  bool AddSweep() {
    for (const Objective& objective : parts_.sweep.spec.objectives) {
      if (!Add("/importance", {{"metric", objective.metric}})) return false;
    }
    return Add("") && AddPages("/trials", "trials", static_cast<size_t>(parts_.limits.trials)) &&
           Add("/cost") && Add("/failures") && AddPages("/lineage", "branches", kBranchesMax) &&
           Add("/activity", {{"page_size", std::to_string(kActionsMax)}});
  }

  // Adds what the pages of the best trials read, as long as it is not too much.
  bool AddTrialPages() {
    TrialQuery query{.order = {.column = "best"}, .limit = parts_.limits.trial_pages};
    const auto best = parts_.reader.Trials(Id(), query);
    if (!best.ok()) return Fail(Problem(best.error()));
    size_t left = parts_.limits.trial_page_bytes;
    for (const TrialRow& trial : best->trials) {
      const auto packed = PackTrialPage(trial);
      if (!packed) return false;
      if (packed->size() > left) break;
      left -= packed->size();
      parts_.file.Add(*packed);
    }
    return true;
  }

  // Returns an empty text for a page that reads more than one answer of logged values.
  std::optional<std::string> PackTrialPage(const TrialRow& trial) {
    const std::string part = "/trials/" + std::to_string(trial.id.number.value);
    std::vector<std::pair<std::string, ReportFile::Query>> requests = {
        {part, {}}, {part + "/logged", {{"after", "0"}, {"limit", std::to_string(kLoggedPage)}}}};
    if (trial.attempts > 1) requests.emplace_back(part + "/schedule", ReportFile::Query());
    std::string packed;
    for (const auto& [path, query] : requests) {
      const auto body = Ask(path, query);
      if (!body) return std::nullopt;
      if (query.contains("limit") && Json::parse(*body).at("logged").size() == kLoggedPage)
        return std::string();
      packed += Pack(path, query, *body);
    }
    return packed;
  }

  bool AddAllCurves() {
    const size_t used = std::min(parts_.file.bytes(), parts_.limits.bytes);
    size_t left = std::max(parts_.limits.bytes - used, parts_.limits.curve_bytes_min);
    const std::vector<std::string> metrics = MetricsWithCurves(parts_.sweep, parts_.limits.metrics);
    for (size_t i = 0; i < metrics.size(); ++i) {
      const size_t others = metrics.size() - i - 1;
      const size_t share = i == 0 && others > 0 ? left / 2 : left / (others + 1);
      const auto added = AddCurves(metrics[i], share);
      if (!added.ok()) return Fail(Problem(added.error()));
      left -= *added;
    }
    return true;
  }

  // Returns the number of bytes added, at most `most`.
  Result<size_t> AddCurves(const std::string& metric, size_t most) {
    const bool few = TrialsOf(parts_.sweep) <= kFewTrials;
    std::string best;
    if (!few) {
      auto packed = PackCurves(metric, {.points = kFinePoints, .best = kBestCurves}, most / 2);
      if (!packed.ok()) return packed.error();
      best = std::move(packed).value();
    }
    const size_t rest = most - std::min(most, best.size());
    const auto trials = static_cast<size_t>(std::max<int64_t>(TrialsOf(parts_.sweep), 1));
    const size_t points = std::clamp(rest / trials / kPointBytes, parts_.limits.points_min,
                                     few ? kFinePoints : kCoarsePoints);
    const auto all = PackCurves(metric, {.points = points}, rest);
    if (!all.ok()) return all.error();
    parts_.file.Add(best);
    parts_.file.Add(*all);
    return best.size() + all->size();
  }

  // Packs curves with at most the points of the selection, and with fewer if they would have more
  // than `most` bytes. Returns an empty text if not even the fewest points are possible.
  Result<std::string> PackCurves(const std::string& metric, CurveSelection selection, size_t most) {
    for (;;) {
      auto packed = PackCurvePages(metric, selection);
      if (!packed.ok() || packed->size() <= most) return packed;
      if (selection.points <= parts_.limits.points_min) return std::string();
      const size_t wanted = selection.points * most / packed->size() * 9 / 10;
      selection.points = std::clamp(wanted, parts_.limits.points_min, selection.points - 1);
    }
  }

  Result<std::string> PackCurvePages(const std::string& metric, CurveSelection selection) {
    ReportFile::Query query = {{"points", std::to_string(selection.points)}};
    // The page asks for the first objective without its name.
    if (metric != parts_.sweep.spec.objective().metric) query["metric"] = metric;
    if (selection.best) query["best"] = std::to_string(*selection.best);
    std::string packed;
    for (;;) {
      const auto page =
          parts_.reader.ThinnedCurves(Id(), metric, selection, {.stop = parts_.request.left});
      if (!page.ok()) return page.error();
      packed += Pack("/curves", query, CurvesToBytes(*page));
      if (!page->next) return packed;
      selection.first = *page->next;
      query["page_token"] = std::to_string(page->next->value);
    }
  }

  const Parts parts_;
  const std::string path_;
  std::optional<Response> failure_;
};

}  // namespace

Response Reports::Get(const Request& request, const Target& target) {
  auto page = pages_ == nullptr ? std::nullopt : pages_->Content(kReportTemplate);
  if (!page)
    return Problem(rest::ProblemType::kNotFound, "this program was built without the dashboard");
  Response response;
  const Status held =
      reader_.HoldSnapshot([&] { response = Record(request, target.sweep(), *std::move(page)); });
  return held.ok() ? std::move(response) : Problem(held.error());
}

Response Reports::Record(const Request& request, SweepId id, std::string page) {
  const auto sweep = reader_.Sweep(id);
  if (!sweep.ok()) return Problem(sweep.error());
  const std::string word = ToString(id);
  if (const int64_t trials = TrialsOf(*sweep); trials > limits_.trials)
    return Problem(rest::ProblemType::kReportTooLarge,
                   "sweep " + word + " has " + std::to_string(trials) +
                       " trials, and a report has at most " + std::to_string(limits_.trials) +
                       "; list them with `attune trial list " + word + " -o json`");
  const std::string time = FormatTime(WallTime());
  const std::string name = sweep->spec.name.empty() ? word : sweep->spec.name;
  const std::string minute = time.substr(0, 10) + " " + time.substr(11, 5) + " UTC";
  auto file = ReportFile::Begin(std::move(page), name + " · Attune " + version_ + ", " + minute);
  if (!file) return Problem(rest::ProblemType::kInternal, "the template of reports is damaged");
  const Json about = {{"sweep", word}, {"time", time}, {"version", version_}};
  file->Add(ReportFile::Pack("/report", {}, Dump(about)));
  if (auto failure = Recorder({reader_, ask_, request, *sweep, limits_, *file}).Record())
    return *std::move(failure);
  Response response{.content_type = "text/html; charset=utf-8", .body = std::move(*file).Finish()};
  response.Set("Content-Disposition", "attachment; filename=\"" + word + ".html\"")
      .Set("Cache-Control", "no-store");
  return response;
}

}  // namespace attune::server
