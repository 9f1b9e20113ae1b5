#include "server/http/routes/service/metrics.h"

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// Escapes a label's value.
std::string EscapeLabel(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text;
}

class Text {
 public:
  // Begins a metric; its samples follow.
  void Begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
    text_.append(name).append(" ").append(type).append("\n");
  }
  void Add(const Labels& labels, double value) {
    text_ += name_;
    for (size_t i = 0; i < labels.size(); ++i) {
      text_.append(i == 0 ? "{" : ",").append(labels[i].first).append("=\"");
      text_.append(EscapeLabel(labels[i].second)).append("\"");
    }
    text_.append(labels.empty() ? " " : "} ").append(FormatReal(value)).append("\n");
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string_view name_;
  std::string text_;
};

// Adds all states, even those with 0, so that alerts find them.
void AddCounts(Text& text, std::span<const std::string_view> states,
               const std::map<std::string, int64_t>& by_state) {
  for (const std::string_view state : states) {
    const auto found = by_state.find(std::string(state));
    text.Add({{"state", std::string(state)}},
             found == by_state.end() ? 0 : static_cast<double>(found->second));
  }
}

constexpr std::array<std::string_view, 6> kSweepStates{"running", "paused", "completed",
                                                       "stopped", "failed", "killed"};
constexpr std::array<std::string_view, 7> kTrialStates{"pending", "running", "paused", "completed",
                                                       "stopped", "failed",  "killed"};
constexpr std::array<std::string_view, 6> kExecutorStates{"online",    "draining",    "drained",
                                                          "unhealthy", "quarantined", "lost"};

void AddExecutors(Text& text, const std::vector<Backend::ExecutorStatus>& executors) {
  std::map<std::string, int64_t> by_state;
  for (const auto& executor : executors) ++by_state[executor.state];
  text.Begin("attune_executors", "gauge", "Executors by state.");
  AddCounts(text, kExecutorStates, by_state);

  const auto each = [&](std::string_view name, std::string_view help, auto total, auto free) {
    text.Begin(name, "gauge", help);
    for (const auto& executor : executors) {
      if (executor.state == "lost") continue;
      text.Add({{"executor", executor.name}, {"state", "used"}}, total(executor) - free(executor));
      text.Add({{"executor", executor.name}, {"state", "free"}}, free(executor));
    }
  };
  using Status = Backend::ExecutorStatus;
  each(
      "attune_executor_cpus", "CPUs by use: held by gangs or free.",
      [](const Status& status) { return status.total.cpus; },
      [](const Status& status) { return status.free.cpus; });
  each(
      "attune_executor_gpus", "GPUs by use: held by gangs, even in part, or free.",
      [](const Status& status) { return status.total.gpus; },
      [](const Status& status) { return status.free.gpus; });
  text.Begin("attune_executor_disk_free_bytes", "gauge",
             "Free bytes on the disk of its data folder.");
  for (const auto& executor : executors) {
    if (executor.disk_free_bytes > 0)
      text.Add({{"executor", executor.name}}, static_cast<double>(executor.disk_free_bytes));
  }
  text.Begin("attune_executor_silent_seconds", "gauge",
             "Seconds since the last message of a connected executor.");
  for (const auto& executor : executors) {
    if (executor.silent_seconds) text.Add({{"executor", executor.name}}, *executor.silent_seconds);
  }
}

}  // namespace

Response MetricsPage::Get(const Request&, const Target&) {
  const auto counts = reader_.CountStates();
  if (!counts.ok()) return Problem(counts.error());
  Text text;
  text.Begin("attune_build_info", "gauge", "Always 1.");
  text.Add({{"version", version_}}, 1);
  text.Begin("attune_ready", "gauge", "Whether the server can decide and write, as /readyz says.");
  text.Add({}, backend_.Ready().ok() ? 1 : 0);
  text.Begin("attune_events_total", "counter", "Events in the log.");
  text.Add({}, static_cast<double>(counts->last.value));
  text.Begin("attune_sweeps", "gauge", "Sweeps by state.");
  AddCounts(text, kSweepStates, counts->sweeps);
  text.Begin("attune_trials", "gauge", "Trials of all sweeps by state.");
  AddCounts(text, kTrialStates, counts->trials);
  size_t waiting = 0;
  backend_.QueryState([&](const Brain& brain) { waiting = brain.Demands().size(); });
  text.Begin("attune_sweeps_waiting", "gauge", "Sweeps whose next gang finds no free slots.");
  text.Add({}, static_cast<double>(waiting));
  AddExecutors(text, backend_.Executors());
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = text.Take()};
}

}  // namespace attune::server
