#include "core/brain/edit.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/result.h"

namespace attune {
namespace {

std::string Text(int64_t value) { return std::to_string(value); }
std::string Text(int value) { return std::to_string(value); }
std::string Text(double value) { return FormatReal(value); }
std::string Text(Seconds value) { return FormatShort(value.value) + " s"; }
std::string Text(const std::string& text) { return text; }
std::string Text(const Value& value) { return FormatValue(value); }
std::string Text(const Plateau& plateau) {
  return "{" + plateau.metric.metric + ", patience " + Text(plateau.patience) +
         (plateau.std ? ", std " + Text(*plateau.std) : ", min_delta " + Text(plateau.min_delta)) +
         ", grace_period " + Text(plateau.grace_period.value) + "}";
}
std::string Text(const Threshold& threshold) {
  return threshold.metric + (threshold.at_least ? " at least " + Text(*threshold.at_least) : "") +
         (threshold.at_most ? " at most " + Text(*threshold.at_most) : "") + " from step " +
         Text(threshold.grace_period.value);
}
std::string Text(const LogPolicy& policy) {
  return policy.pattern + ": " + std::string(Name(policy.action));
}
template <class T>
std::string Text(const std::optional<T>& value) {
  return value ? Text(*value) : "none";
}
template <class T>
std::string Text(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "[" : ", ") + Text(value);
  return text.empty() ? "none" : text + "]";
}

class Comparison {
 public:
  Comparison(const SweepSpec& from, const SweepSpec& to) : from_(from), to_(to) {}

  Result<std::vector<std::string>> Run() {
    CompareFixed();
    CompareLimits();
    CompareSpace();
    CompareOptions("searcher", from_.searcher, to_.searcher);
    CompareOptions("scheduler", from_.scheduler, to_.scheduler);
    if (fault_) return *fault_;
    return std::move(changes_);
  }

 private:
  // The first fault is the one that is told.
  void Fault(const std::string& key) {
    if (!fault_)
      fault_ = Error{ErrorCode::kInvalid,
                     key +
                         ": cannot change once the sweep has begun, because its trials so far "
                         "stand on it; start a new sweep with it"};
  }
  template <class T>
  void Fixed(const std::string& key, const T& from, const T& to) {
    if (!(from == to)) Fault(key);
  }
  template <class T>
  void Free(const std::string& key, const T& from, const T& to) {
    if (!(from == to)) changes_.push_back(key + " " + Text(to));
  }

  void CompareFixed() {
    Fixed("command", from_.program.command, to_.program.command);
    Fixed("env", from_.program.environment, to_.program.environment);
    Fixed("working_directory", from_.program.working_directory, to_.program.working_directory);
    Fixed("reports.pattern", from_.program.report_pattern, to_.program.report_pattern);
    Fixed(from_.objectives.size() > 1 ? "metrics" : "metric", from_.objectives, to_.objectives);
    Fixed("constraints", from_.constraints, to_.constraints);
    Fixed("searcher.name", from_.searcher.name, to_.searcher.name);
    Fixed("searcher.seed", from_.seed, to_.seed);
    Fixed("scheduler.name", from_.scheduler.name, to_.scheduler.name);
    Fixed("scheduler.time_attr", from_.time_attr, to_.time_attr);
    Fixed("resources", from_.gang, to_.gang);
    Fixed("checkpoint", from_.checkpoint, to_.checkpoint);
    Fixed("warm_start", from_.warm_start, to_.warm_start);
  }

  void CompareLimits() {
    Free("name", from_.name, to_.name);
    Free("tags", from_.tags, to_.tags);
    Free("priority", from_.priority, to_.priority);
    Free("max_concurrent_trials", from_.max_concurrent_trials, to_.max_concurrent_trials);
    Free("scheduler.max", from_.max_step.value, to_.max_step.value);
    const StopPolicy& old = from_.stop;
    const StopPolicy& now = to_.stop;
    Free("stop.max_trials", old.max_trials, now.max_trials);
    Free("stop.max_time", old.max_time, now.max_time);
    Free("stop.max_gpu_hours", old.max_gpu_hours, now.max_gpu_hours);
    Free("stop.patience", old.patience, now.patience);
    Free("stop.max_trial_time", old.max_trial_time, now.max_trial_time);
    Free("stop.trial_patience", old.trial_patience, now.trial_patience);
    Free("stop.plateau", old.plateau, now.plateau);
    Free("stop.threshold", old.thresholds, now.thresholds);
    for (const std::string& metric : to_.ReportedMetrics()) CheckReported(metric);
    for (size_t i = 0; i < to_.objectives.size(); ++i) {
      const auto at = [i](const StopPolicy& stop) {
        return i < stop.targets.size() ? stop.targets[i] : std::nullopt;
      };
      Free("target of " + to_.objectives[i].metric, at(old), at(now));
    }
    const FailurePolicy& before = from_.failure;
    const FailurePolicy& after = to_.failure;
    Free("failure.max_restarts", before.max_restarts, after.max_restarts);
    Free("failure.max_failed_trials", before.max_failed_trials, after.max_failed_trials);
    Free("failure.backoff", before.backoff, after.backoff);
    Free("failure.stall_timeout", before.stall_timeout, after.stall_timeout);
    Free("failure.on_log", before.on_log, after.on_log);
  }

  // Programs that run need not report what they were not asked for.
  void CheckReported(const std::string& metric) {
    const auto known = from_.ReportedMetrics();
    if (fault_ || std::ranges::find(known, metric) != known.end()) return;
    fault_ = Error{ErrorCode::kInvalid,
                   "stop: the trials of the sweep were not asked to report " + metric +
                       "; name one of its metrics, or start a new sweep with it"};
  }

  void CompareSpace() {
    const auto& old = from_.space.parameters();
    const auto& now = to_.space.parameters();
    for (const Parameter& parameter : old) {
      if (to_.space.Find(parameter.name) == nullptr) Fault("parameters." + parameter.name);
    }
    for (const Parameter& parameter : now) {
      if (from_.space.Find(parameter.name) == nullptr) Fault("parameters." + parameter.name);
    }
    if (fault_) return;
    for (size_t i = 0; i < old.size(); ++i) {
      const std::string key = "parameters." + old[i].name;
      if (old[i].name != now[i].name || old[i].domain.index() != now[i].domain.index())
        return Fault(key);
      Fixed(key + ".when", old[i].when, now[i].when);
      std::visit(
          [&](const auto& domain) {
            CompareDomain(key, domain, std::get<std::decay_t<decltype(domain)>>(now[i].domain));
          },
          old[i].domain);
    }
  }

  template <class Range>
  void CompareDomain(const std::string& key, const Range& from, const Range& to) {
    Fixed(key + ".scale", from.scale, to.scale);
    Free(key + ".min", from.min, to.min);
    Free(key + ".max", from.max, to.max);
    Free(key + ".step", from.step, to.step);
  }
  void CompareDomain(const std::string& key, const CategoricalDomain& from,
                     const CategoricalDomain& to) {
    Free(key + ".values", from.values, to.values);
  }
  void CompareDomain(const std::string& key, const ConstantDomain& from, const ConstantDomain& to) {
    Fixed(key + ".value", from.value, to.value);
  }

  void CompareOptions(const std::string& kind, const AlgorithmSpec& from, const AlgorithmSpec& to) {
    for (const auto& [name, value] : to.options) {
      const auto old = from.options.find(name);
      if (old == from.options.end() || old->second != value)
        changes_.push_back(kind + "." + name + " " + FormatValue(value));
    }
  }

  const SweepSpec& from_;
  const SweepSpec& to_;
  std::vector<std::string> changes_;
  std::optional<Error> fault_;
};

}  // namespace

Result<std::vector<std::string>> Changes(const SweepSpec& from, const SweepSpec& to) {
  return Comparison(from, to).Run();
}

std::vector<Config> PointsInside(const std::vector<Config>& points, size_t used,
                                 const SearchSpace& space) {
  std::vector<Config> inside;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i < used || space.Resolve(points[i]).ok()) inside.push_back(points[i]);
  }
  return inside;
}

}  // namespace attune
