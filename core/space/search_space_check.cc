#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/result.h"
#include "core/space/domain.h"
#include "core/space/search_space.h"

// SearchSpace::Check finds the faults of parameters, with messages for the author of the sweep
// file.
namespace attune {
namespace {

constexpr double kMaxSteps = 0x1p53;  // with more, steps of a real range are not distinct doubles

class Checker {
 public:
  explicit Checker(const std::vector<Parameter>& parameters) : parameters_(parameters) {
    for (const Parameter& parameter : parameters) places_.emplace(parameter.name, &parameter);
  }

  std::vector<SpaceFault> Run() {
    std::set<std::string_view> names;
    for (const Parameter& parameter : parameters_) {
      if (parameter.name.empty()) Fault("", "", "a parameter needs a name");
      if (!names.insert(parameter.name).second) {
        Fault(parameter.name, "", "is defined twice; rename or remove one");
      }
      std::visit([&](const auto& domain) { CheckDomain(parameter.name, domain); },
                 parameter.domain);
    }
    // Whether a condition can hold is known only if all domains are valid.
    const bool domains_valid = faults_.empty();
    for (const Parameter& parameter : parameters_) {
      for (const Condition& condition : parameter.when)
        CheckCondition(parameter, condition, domains_valid);
    }
    CheckCycles();
    return std::move(faults_);
  }

 private:
  bool IsDetailed() const { return faults_.size() < SearchSpace::kDetailedFaults; }

  void Fault(std::string parameter, std::string key, std::string message) {
    if (!IsDetailed()) return faults_.push_back({});
    faults_.push_back({std::move(parameter), std::move(key), std::move(message)});
  }

  void CheckDomain(const std::string& name, const FloatDomain& domain) {
    const bool finite = std::isfinite(domain.min) && std::isfinite(domain.max);
    if (!std::isfinite(domain.min)) Fault(name, "min", "must be a finite number");
    if (!std::isfinite(domain.max)) Fault(name, "max", "must be a finite number");
    if (finite && domain.max < domain.min) {
      Fault(name, "max",
            FormatReal(domain.max) + " is below min " + FormatReal(domain.min) +
                "; swap them or raise max");
    }
    if (finite && !std::isfinite(domain.max - domain.min)) {
      Fault(name, "max", "the range is too wide for a 64-bit float; lower max or raise min");
    }
    if (domain.scale == Scale::kLog && !(domain.min > 0)) {
      Fault(name, "min", "log scale needs min > 0; raise min or use scale: linear");
    }
    if (domain.step && !(*domain.step > 0 && std::isfinite(*domain.step))) {
      Fault(name, "step", "must be above 0; raise it or remove it");
    } else if (domain.step && finite && (domain.max - domain.min) / *domain.step > kMaxSteps) {
      Fault(name, "step", "is too small to distinguish the steps; raise it or remove it");
    }
  }

  void CheckDomain(const std::string& name, const IntDomain& domain) {
    if (domain.max < domain.min) {
      Fault(name, "max",
            std::to_string(domain.max) + " is below min " + std::to_string(domain.min) +
                "; swap them or raise max");
    } else if (static_cast<uint64_t>(domain.max) - static_cast<uint64_t>(domain.min) >=
               static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      Fault(name, "max", "the range is too wide for a 64-bit integer; lower max or raise min");
    }
    if (domain.scale == Scale::kLog && domain.min <= 0) {
      Fault(name, "min", "log scale needs min > 0; raise min or use scale: linear");
    }
    if (domain.step <= 0) Fault(name, "step", "must be 1 or more");
  }

  void CheckDomain(const std::string& name, const CategoricalDomain& domain) {
    if (domain.values.empty()) Fault(name, "values", "is empty; list at least one value");
    SettingSet& listed = listed_[&domain];
    for (const Value& value : domain.values) {
      CheckFinite(name, "values", value);
      if (!listed.Insert(value))
        Fault(name, "values", "'" + FormatValue(value) + "' is listed twice; remove one");
    }
  }

  void CheckDomain(const std::string& name, const ConstantDomain& domain) {
    CheckFinite(name, "value", domain.value);
  }

  void CheckFinite(const std::string& name, const std::string& key, const Value& value) {
    const auto number = AsNumber(value);
    if (number && !std::isfinite(*number)) {
      Fault(name, key, FormatReal(*number) + " is not a finite number");
    }
  }

  void CheckCondition(const Parameter& parameter, const Condition& condition, bool domains_valid) {
    const auto found = places_.find(condition.parent);
    if (found == places_.end()) {
      Fault(parameter.name, "when",
            "unknown parameter '" + condition.parent + "'; use one of: " + Names());
      return;
    }
    const auto same = [&](const Condition& other) { return other.parent == condition.parent; };
    if (&*std::find_if(parameter.when.begin(), parameter.when.end(), same) != &condition) {
      Fault(parameter.name, "when",
            "names '" + condition.parent + "' twice; merge the two conditions");
      return;
    }
    const bool values = !condition.any_of.empty();
    const bool bounds = condition.at_least || condition.at_most;
    if (values == bounds) {
      Fault(parameter.name, "when",
            "has " + std::string(values ? "both values and bounds" : "no condition") + " for '" +
                condition.parent + "'; give values or gte / lte");
      return;
    }
    if (!domains_valid) return;
    const Parameter& parent = *found->second;
    if (values) {
      CheckValues(parameter, condition, parent);
    } else {
      CheckBounds(parameter, condition, parent);
    }
  }

  void CheckValues(const Parameter& parameter, const Condition& condition,
                   const Parameter& parent) {
    const auto* categorical = std::get_if<CategoricalDomain>(&parent.domain);
    for (const Value& wanted : condition.any_of) {
      if (categorical != nullptr && listed_.at(categorical).Contains(wanted)) continue;
      if (!IsDetailed()) {
        Fault("", "", "");
        continue;
      }
      const Result<Value> admitted = Admit(parent.domain, wanted);
      const bool integer_as_real = std::holds_alternative<IntDomain>(parent.domain) &&
                                   std::holds_alternative<double>(wanted);
      if (admitted.ok() || (integer_as_real && IsIntegerOf(parent.domain, wanted))) continue;
      Fault(parameter.name, "when",
            "can never hold: " + parent.name + ": " + admitted.error().message);
    }
  }

  static bool IsIntegerOf(const Domain& domain, const Value& real) {
    const double number = *AsNumber(real);
    if (number != std::floor(number) || std::abs(number) >= kMaxSteps) return false;
    return Admit(domain, static_cast<int64_t>(number)).ok();
  }

  void CheckBounds(const Parameter& parameter, const Condition& condition,
                   const Parameter& parent) {
    const double low = condition.at_least.value_or(-std::numeric_limits<double>::infinity());
    const double high = condition.at_most.value_or(std::numeric_limits<double>::infinity());
    if (!CanLieWithin(parent.domain, low, high)) {
      Fault(parameter.name, "when",
            "can never hold: " + parent.name + " has no value" +
                (condition.at_least ? " at or above " + FormatReal(low) : "") +
                (condition.at_least && condition.at_most ? " and" : "") +
                (condition.at_most ? " at or below " + FormatReal(high) : ""));
    }
  }

  static bool CanLieWithin(const Domain& domain, double low, double high) {
    if (!(low <= high)) return false;
    if (const auto* categorical = std::get_if<CategoricalDomain>(&domain)) {
      return std::any_of(categorical->values.begin(), categorical->values.end(),
                         [&](const Value& value) { return IsBetween(value, low, high); });
    }
    const auto count = CountValues(domain);
    if (!count) {
      const auto& range = std::get<FloatDomain>(domain);
      return range.min <= high && range.max >= low;
    }
    // Values are ascending: find the first value that is not below `low`.
    int64_t first = 0;
    for (int64_t left = *count; left > 0;) {
      const int64_t half = left / 2;
      const auto number = AsNumber(ValueAt(domain, first + half));
      if (number && *number < low) {
        first += half + 1;
        left -= half + 1;
      } else {
        left = half;
      }
    }
    return first < *count && IsBetween(ValueAt(domain, first), low, high);
  }

  static bool IsBetween(const Value& value, double low, double high) {
    const auto number = AsNumber(value);
    return number && *number >= low && *number <= high;
  }

  // Walks from children to parents. A walk that returns to a parameter on its path has found a
  // cycle. Each cycle is reported once, for the parameter that closes it.
  void CheckCycles() {
    enum class Mark { kOnPath, kDone };
    std::map<const Parameter*, Mark> marks;
    for (const Parameter& start : parameters_) {
      struct Visit {
        const Parameter* parameter;
        size_t next = 0;  // condition to follow
      };
      if (marks.contains(&start)) continue;
      std::vector<Visit> path{{&start}};
      marks[&start] = Mark::kOnPath;
      while (!path.empty()) {
        Visit& visit = path.back();
        if (visit.next == visit.parameter->when.size()) {
          marks[visit.parameter] = Mark::kDone;
          path.pop_back();
          continue;
        }
        const auto found = places_.find(visit.parameter->when[visit.next++].parent);
        if (found == places_.end()) continue;
        const Parameter* parent = found->second;
        const auto [mark, fresh] = marks.emplace(parent, Mark::kOnPath);
        if (fresh) {
          path.push_back({parent});
        } else if (mark->second == Mark::kOnPath) {
          std::string cycle = parent->name;
          for (auto back = path.rbegin(); back->parameter != parent; ++back) {
            cycle = back->parameter->name + " → " + cycle;
          }
          Fault(
              parent->name, "when",
              "is circular: " + parent->name + " → " + cycle + "; remove one of these conditions");
        }
      }
    }
  }

  std::string Names() const {
    constexpr size_t kShown = 20;
    std::string names;
    for (size_t i = 0; i < parameters_.size() && i < kShown; ++i) {
      names += (i == 0 ? "" : ", ") + parameters_[i].name;
    }
    return parameters_.size() > kShown ? names + ", …" : names;
  }

  const std::vector<Parameter>& parameters_;
  std::map<std::string_view, const Parameter*> places_;
  std::map<const CategoricalDomain*, SettingSet> listed_;
  std::vector<SpaceFault> faults_;
};

}  // namespace

std::vector<SpaceFault> SearchSpace::Check(const std::vector<Parameter>& parameters) {
  return Checker(parameters).Run();
}

}  // namespace attune
