#include "core/brain/edit.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "core/log/sweep_keys.h"

namespace attune {
namespace {

// ---- members as text for messages ------------------------------------------------------------

std::string Text(const Value& value) { return FormatValue(value); }
std::string Text(const std::string& text) { return text; }
std::string Text(SweepId sweep) { return ToString(sweep); }
std::string Text(const std::pair<std::string, std::string>& pair) {
  return pair.first + "=" + pair.second;
}
std::string Text(const Requirements& required) { return ToString(required); }
template <ScalarMember T>
std::string Text(const T& member) {
  const std::optional<Value> value = ToValue(member);
  if (!value) return "none";
  if constexpr (std::is_same_v<T, Seconds>) return FormatShort(member.value) + " s";
  return FormatValue(*value);
}
template <class T>
std::string Text(const std::vector<T>& values);
template <HasKeys T>
std::string Text(const T& owner) {
  std::string text;
  ForEachRow<T>([&]<RowKind kind, auto... path>(const Row<kind, path...>& row) {
    if constexpr (kind == RowKind::kEntryName) text += row.FieldIn(owner);
    if constexpr (kind == RowKind::kKey) {
      const std::string field = Text(row.FieldIn(owner));
      if (field != "none") text += (text.empty() ? "" : ", ") + row.key.name + " " + field;
    }
  });
  return "{" + text + "}";
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
    CompareRows();
    CompareMetrics();
    CompareSpace();
    CompareOptions("searcher", from_.searcher, to_.searcher);
    CompareOptions("scheduler", from_.scheduler, to_.scheduler);
    if (fault_) return *fault_;
    return std::move(changes_);
  }

 private:
  // Only the first fault is reported.
  void Fault(const std::string& key) {
    if (!fault_)
      fault_ =
          Error{ErrorCode::kInvalid, key +
                                         ": cannot change after the sweep has started, because its "
                                         "trials depend on it; start a new sweep instead"};
  }
  template <class T>
  void RequireSame(const std::string& key, const T& from, const T& to) {
    if (!(from == to)) Fault(key);
  }
  template <class T>
  void NoteIfChanged(const std::string& key, const T& from, const T& to) {
    if (!(from == to)) Note(key, Text(from), Text(to));
  }
  void Note(const std::string& key, const std::string& from, const std::string& to) {
    changes_.push_back(key + " " + to + " (was " + from + ")");
  }

  void CompareRows() {
    ForEachKey<SweepSpec>([this](const auto& row) {
      const auto& from = row.FieldIn(from_);
      const auto& to = row.FieldIn(to_);
      if (from == to) return;
      if (!row.key.editable) return Fault(row.key.name);
      Note(row.key.name, Text(from), Text(to));
    });
    RequireSame("resources.gpus_per_worker", GpusPerWorker(from_.gang), GpusPerWorker(to_.gang));
  }

  void CompareMetrics() {
    RequireSame(from_.objectives.size() > 1 ? "metrics" : "metric", from_.objectives,
                to_.objectives);
    for (const std::string& metric : to_.ReportedMetrics()) CheckReported(metric);
    for (size_t i = 0; i < to_.objectives.size(); ++i) {
      const auto target = [i](const StopPolicy& stop) {
        return i < stop.targets.size() ? stop.targets[i] : std::nullopt;
      };
      NoteIfChanged("target of " + to_.objectives[i].metric, target(from_.stop), target(to_.stop));
    }
  }

  // A running program may not report a metric that it was not asked for.
  void CheckReported(const std::string& metric) {
    const auto known = from_.ReportedMetrics();
    if (fault_ || std::ranges::find(known, metric) != known.end()) return;
    fault_ = Error{ErrorCode::kInvalid, "stop: the sweep's trials need not report " + metric +
                                            "; name one of its metrics, or start a new sweep"};
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
      RequireSame(key + ".when", old[i].when, now[i].when);
      RequireSame(key, old[i].patches, now[i].patches);
      if (old[i].patches) RequireSame(key + ".patches", old[i].domain, now[i].domain);
      std::visit(
          [&](const auto& domain) {
            CompareDomain(key, domain, std::get<std::decay_t<decltype(domain)>>(now[i].domain));
          },
          old[i].domain);
    }
  }

  template <class Range>
  void CompareDomain(const std::string& key, const Range& from, const Range& to) {
    RequireSame(key + ".scale", from.scale, to.scale);
    NoteIfChanged(key + ".min", from.min, to.min);
    NoteIfChanged(key + ".max", from.max, to.max);
    NoteIfChanged(key + ".step", from.step, to.step);
  }
  void CompareDomain(const std::string& key, const CategoricalDomain& from,
                     const CategoricalDomain& to) {
    NoteIfChanged(key + ".values", from.values, to.values);
  }
  void CompareDomain(const std::string& key, const ConstantDomain& from, const ConstantDomain& to) {
    RequireSame(key + ".value", from.value, to.value);
  }

  void CompareOptions(const std::string& kind, const AlgorithmSpec& from, const AlgorithmSpec& to) {
    for (const auto& [name, value] : to.options) {
      const auto old = from.options.find(name);
      if (old != from.options.end() && old->second == value) continue;
      Note(kind + "." + name, old == from.options.end() ? "unset" : FormatValue(old->second),
           FormatValue(value));
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
