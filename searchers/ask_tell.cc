#include "searchers/ask_tell.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "core/algorithms/algorithms.h"
#include "core/base/content_hash.h"
#include "core/log/fields.h"
#include "core/space/domain.h"
#include "searchers/register.h"

namespace attune::searchers {
namespace {

constexpr SweepId kSweep(1);

TrialId Id(uint32_t trial) { return {kSweep, TrialNumber(trial)}; }

const Algorithms& RegisteredSearchers() {
  static const Algorithms known = [] {
    Algorithms algorithms;
    RegisterSearchers(algorithms);
    return algorithms;
  }();
  return known;
}

// Describes the fault of an option's value; empty if there is none. Converts an integer to a real
// number if the option is one.
std::string FaultOf(const Option& option, Value& value) {
  if (std::holds_alternative<double>(option.fallback) && std::holds_alternative<int64_t>(value))
    value = static_cast<double>(std::get<int64_t>(value));
  if (value.index() != option.fallback.index())
    return "is " + std::string(TypeName(value)) + "; it must be " +
           std::string(TypeName(option.fallback));
  const auto number = AsNumber(value);
  if (number && option.min && !(*number >= *option.min))
    return FormatValue(value) + " is below " + FormatReal(*option.min);
  if (number && option.max && !(*number <= *option.max))
    return FormatValue(value) + " is above " + FormatReal(*option.max);
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && !option.one_of.empty() && std::ranges::count(option.one_of, *text) == 0)
    return *text + " is not one of its values";
  return "";
}

// All faults, one per line.
std::string FaultsOf(const std::vector<Parameter>& parameters, AskTell::Options& given) {
  std::string faults;
  const auto add = [&](const std::string& fault) {
    faults += (faults.empty() ? "" : "\n") + fault;
  };
  for (const SpaceFault& fault : SearchSpace::Check(parameters)) {
    add("parameters" + (fault.parameter.empty() ? "" : "." + fault.parameter) +
        (fault.key.empty() ? "" : "." + fault.key) + ": " + fault.message);
  }
  if (given.objectives.empty()) add("objectives: none; name a metric, such as Minimise(\"loss\")");
  std::set<std::string> metrics;
  for (const Objective& objective : given.objectives) {
    if (objective.metric.empty()) add("objectives: a metric needs a name");
    if (!metrics.insert(objective.metric).second) add("objectives: " + objective.metric + " twice");
  }
  const auto* entry = RegisteredSearchers().FindSearcher(given.searcher);
  if (entry == nullptr) {
    std::string names;
    for (const auto& each : RegisteredSearchers().searchers())
      names += (names.empty() ? "" : ", ") + each.name;
    add("searcher: there is no " + given.searcher + "; use one of " + names);
    return faults;
  }
  for (auto& [name, value] : given.options) {
    const auto option = std::ranges::find(entry->options, name, &Option::name);
    const std::string fault = option == entry->options.end()
                                  ? "is not an option of " + given.searcher
                                  : FaultOf(*option, value);
    if (!fault.empty()) add("options." + name + ": " + fault);
  }
  for (const Option& option : entry->options) {
    if (option.required && !given.options.contains(option.name))
      add("options." + option.name + ": " + given.searcher + " needs it");
  }
  return faults;
}

}  // namespace

Result<AskTell> AskTell::Make(std::vector<Parameter> parameters, Options options) {
  if (std::string faults = FaultsOf(parameters, options); !faults.empty())
    return Error{ErrorCode::kInvalid, std::move(faults)};
  SweepSpec spec{.objectives = std::move(options.objectives),
                 .constraints = std::move(options.constraints),
                 .space = SearchSpace(std::move(parameters)),
                 .searcher = {.name = std::move(options.searcher),
                              .options = {options.options.begin(), options.options.end()}},
                 .seed = options.seed};
  for (const WarmStart& start : options.warm_start) spec.warm_start.push_back(start.from);
  RegisteredSearchers().Complete(spec);
  auto searcher = RegisteredSearchers().MakeSearcher(spec);
  if (!searcher.ok()) return searcher.error();
  AskTell made(std::move(spec), std::move(searcher).value());
  if (!options.warm_start.empty()) {
    made.Observe(SweepCreated{
        .sweep = kSweep, .spec = made.spec_, .warm_start = std::move(options.warm_start)});
  }
  return made;
}

AskTell::AskTell(SweepSpec spec, std::unique_ptr<Searcher> searcher)
    : spec_(std::move(spec)), searcher_(std::move(searcher)) {}

std::optional<AskTell::Trial> AskTell::Ask() {
  const ProposalNumber proposal(proposals_);
  Suggestion suggestion = searcher_->Suggest(proposal);
  if (auto* proposed = std::get_if<Proposed>(&suggestion)) {
    ++proposals_;
    return Create(std::move(proposed->config), std::move(proposed->rationale), proposal);
  }
  const auto* wait = std::get_if<Wait>(&suggestion);
  reason_ = wait != nullptr ? wait->text : std::get<Exhausted>(suggestion).text;
  return std::nullopt;
}

Result<AskTell::Trial> AskTell::Add(const Config& config) {
  auto resolved = spec_.space.Resolve(config);
  if (!resolved.ok()) return resolved.error();
  return Create(std::move(resolved).value(), {.rule = "own", .text = "added by the program"},
                std::nullopt);
}

AskTell::Trial AskTell::Create(Config config, Rationale rationale,
                               std::optional<ProposalNumber> proposal) {
  Observe(TrialCreated{.trial = Id(trials_),
                       .config = config,
                       .origin = proposal ? spec_.searcher.name : std::string(kEnqueued),
                       .proposal = proposal});
  pending_.emplace(trials_, config);
  return {trials_++, std::move(config), std::move(rationale)};
}

Status AskTell::Tell(uint32_t trial, const Metrics& metrics) {
  const auto pending = pending_.find(trial);
  if (pending == pending_.end())
    return Error{ErrorCode::kNotFound, "trial " + std::to_string(trial) +
                                           (trial < trials_ ? " already has a result"
                                                            : " does not exist; call Ask first")};
  Observe(TrialReported{{Id(trial), 1}, {Step(1), metrics}});
  Observe(TrialEnded{Id(trial), TrialState::kCompleted, ""});
  auto values = ValuesThatCount(spec_.objectives, spec_.constraints, metrics);
  if (!values.empty()) {
    const FrontChange change =
        AddToFront(spec_.objectives, {TrialNumber(trial), 1, Step(1), std::move(values)}, best_);
    for (const attune::Best& removed : change.left) front_.erase(removed.trial.value);
    if (change.joined) front_[trial] = std::move(pending->second);
  }
  pending_.erase(pending);
  return {};
}

Status AskTell::Tell(uint32_t trial, double value) {
  ATTUNE_CHECK(spec_.objectives.size() == 1);
  return Tell(trial, Metrics{{spec_.objective().metric, value}});
}

void AskTell::Observe(Fact fact) {
  searcher_->Observe({EventSeq(++events_), Time{0}, std::move(fact)});
}

std::vector<AskTell::Best> AskTell::best() const {
  std::vector<Best> best;
  for (const attune::Best& report : best_)
    best.push_back({report.trial.value, front_.at(report.trial.value), report.values});
  return best;
}

std::string AskTell::Save() const {
  ArchiveWriter spec, body, whole;
  spec(spec_);
  body(trials_, proposals_, events_, pending_, front_, best_, reason_);
  searcher_->Save(body);
  const std::string state = body.Take();
  whole(spec.Take(), ContentHash(state), state);
  return whole.Take();
}

Status AskTell::Load(std::string_view bytes) {
  AskTell loaded(spec_, RegisteredSearchers().MakeSearcher(spec_).value());
  ArchiveWriter spec;
  spec(spec_);
  ArchiveReader whole(bytes);
  std::string saved_spec, body;
  uint64_t hash = 0;
  whole(saved_spec, hash, body);
  const bool matches = whole.AtEnd() && saved_spec == spec.Take() && hash == ContentHash(body);
  ArchiveReader archive(body);
  if (matches) {
    archive(loaded.trials_, loaded.proposals_, loaded.events_, loaded.pending_, loaded.front_,
            loaded.best_, loaded.reason_);
    loaded.searcher_->Load(archive);
  }
  if (!matches || !archive.AtEnd()) {
    return Error{
        ErrorCode::kCorrupt,
        "the bytes are damaged, or were saved with another version, space, seed, objectives or "
        "options of " +
            spec_.searcher.name + "; use the same arguments, or start without Load"};
  }
  *this = std::move(loaded);
  return {};
}

}  // namespace attune::searchers
