#include "server/http/routes/sweeps/sweeps.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/result.h"
#include "core/brain/warm_start.h"
#include "core/log/request_key.h"
#include "core/log/secret_names.h"
#include "server/http/answers/refusal.h"
#include "server/http/answers/render.h"
#include "server/http/routes/request/query.h"
#include "server/http/routes/sweeps/sweep_file.h"
#include "server/http/transport/problem.h"
#include "server/store/format_time.h"

namespace attune::server {
namespace {

// The metric of the queries `metric` and `mode`. The default is the first objective.
Result<Objective> MetricToCompare(const Request& request, const SweepRow& sweep) {
  const std::vector<Objective>& objectives = sweep.spec.objectives;
  Objective metric = sweep.spec.objective();
  const std::string mode = request.Query("mode").value_or("");
  if (!mode.empty() && mode != Name(Mode::kMin) && mode != Name(Mode::kMax))
    return Invalid("mode: " + mode + " is not a mode; use min or max");
  if (const auto name = request.Query("metric"); name && !name->empty()) {
    const auto objective = std::ranges::find(objectives, *name, &Objective::metric);
    if (objective != objectives.end()) {
      metric = *objective;
    } else if (!mode.empty()) {
      metric.metric = *name;
    } else {
      return Invalid("mode: " + *name + " is not an objective of sweep " + ToString(sweep.id) +
                     "; add mode=min if low values are good, or mode=max");
    }
  }
  if (!mode.empty()) metric.mode = mode == Name(Mode::kMin) ? Mode::kMin : Mode::kMax;
  return metric;
}

// The path of the sweep file; empty if the request does not contain it.
std::string PathOf(const Request& request) {
  const std::string directory = request.Query("directory").value_or("");
  const std::string file = request.Query("file").value_or("");
  if (directory.empty() || file.empty()) return "";
  return (std::filesystem::path(directory) / file).lexically_normal().string();
}

}  // namespace

std::optional<Response> Sweeps::RefuseUndefinedSecrets(const SweepSpec& spec) {
  const auto undefined = backend_.UndefinedSecrets(spec.program.secrets);
  if (!undefined.ok()) return Problem(undefined.error());
  if (undefined->empty()) return std::nullopt;
  std::string names;
  std::string commands;
  for (const std::string& name : *undefined) {
    names += (names.empty() ? "" : ", ") + name;
    commands += (commands.empty() ? "`" : ", `") + ("attune secret set " + name + "`");
  }
  return Problem(rest::ProblemType::kUndefinedSecret, "secrets: the server has no value of " +
                                                          names + "; set it with " + commands +
                                                          " on the server's host");
}

Status Sweeps::ChooseStore(SweepSpec& spec) {
  if (spec.External()) return {};
  if (spec.storage.empty()) spec.storage = backend_.DefaultStore();
  return spec.storage.empty() ? Status() : backend_.CheckStore(spec.storage);
}

Response Sweeps::RequireCode(const Request& request, const CodeSpec& code) {
  const bool is_sent = !request.Query("code_digest").value_or("").empty();
  return CodeRequired(
      code.digest.empty()
          ? "code: the server needs a snapshot of these files, which attune and the Python client "
            "send"
          : "code.digest: the server has no snapshot " + code.digest +
                (is_sent ? "; send it again" : "; remove the digest to send the files again"),
      {.path = code.path,
       .include = code.include,
       .exclude = code.exclude,
       .digest = is_sent ? "" : code.digest,
       .bytes_max = code_ == nullptr ? 0 : static_cast<int64_t>(code_->bytes_max())});
}

// Adds the snapshots with the patches that parameters can choose, and keeps them while `kept`
// exists.
Status Sweeps::ApplyPatches(SweepSpec& spec, std::vector<std::shared_ptr<void>>& kept) {
  CodeSpec& code = *spec.program.code;
  code.patched.clear();
  const auto combinations = PatchCombinations(spec.space, kMaxPatchedCode);
  if (!combinations)
    return Error{ErrorCode::kInvalid,
                 "parameters: more than " + std::to_string(kMaxPatchedCode) +
                     " combinations of patches; list fewer patches, or make several sweeps"};
  for (const std::vector<std::string>& patches : *combinations) {
    std::vector<std::string> texts;
    std::string names;
    for (const std::string& path : patches) {
      Result<std::string> text = code_->ReadFile(code.digest, path, CodeStorage::kPatchBytesMax);
      if (!text.ok())
        return Error{text.error().code,
                     "parameters: the patch " + path + ": " + text.error().message};
      texts.push_back(*std::move(text));
      names += (names.empty() ? "" : ", then ") + path;
    }
    Result<std::string> digest = code_->ApplyPatches(code.digest, texts);
    if (!digest.ok())
      return Error{digest.error().code, "parameters: " + names + ": " + digest.error().message};
    kept.push_back(code_->Keep(*digest));
    code.patched.push_back({patches, *std::move(digest)});
  }
  return {};
}

// Reads the results of earlier sweeps from the tables.
Result<std::vector<WarmStart>> Sweeps::WarmStartsOf(const SweepSpec& spec) {
  std::vector<WarmStart> starts;
  for (const SweepId from : spec.warm_start) {
    const auto earlier = reader_.Sweep(from);
    if (!earlier.ok()) {
      if (earlier.error().code != ErrorCode::kNotFound) return earlier.error();
      return Error{ErrorCode::kInvalid, "warm_start: there is no sweep " + ToString(from) +
                                            "; `attune sweep list` lists the existing ones"};
    }
    auto results = reader_.Results(from);
    if (!results.ok()) return results.error();
    auto start = TakeResults(spec, from, earlier->spec, std::move(results).value());
    if (!start.ok()) return start.error();
    starts.push_back(std::move(start).value());
  }
  return starts;
}

// The sweep that an earlier request with this key has created.
Result<std::optional<SweepId>> Sweeps::FindRequested(const std::string& key) {
  if (key.empty()) return std::optional<SweepId>();
  const auto earlier = reader_.FindRequest(SweepId(0), key);
  if (!earlier.ok()) return earlier.error();
  return *earlier ? SweepOf((*earlier)->fact) : std::nullopt;
}

Result<SweepId> Sweeps::CreateOrFind(CreateSweep command, const std::string& actor) {
  const std::string key = command.idempotency_key;
  auto taken = WarmStartsOf(*command.spec);
  if (!taken.ok()) return taken.error();
  command.warm_start = std::move(taken).value();
  const auto events = backend_.Execute(std::move(command), actor);
  if (!events.ok()) return events.error();
  if (!events->empty()) return std::get<SweepCreated>(events->front().fact).sweep;
  std::optional<SweepId> id;  // created by a concurrent request
  backend_.QueryState([&](const Brain& brain) {
    const auto& by_key = brain.state().by_key;
    if (const auto made = FindRequest(by_key, key); made != by_key.end()) id = made->second;
  });
  if (id) return *id;
  return Error{ErrorCode::kConflict,
               "the sweep of another request with this Idempotency-Key has "
               "ended and was deleted meanwhile; try again"};
}

Response Sweeps::Create(const Request& request, const Target&) {
  auto key = IdempotencyKey(request);
  if (!key.ok()) return Problem(key.error());
  if (auto reused = RefuseReusedKey(reader_, SweepId(0), *key)) return *std::move(reused);
  if (const Status absolute = CheckDirectory(request); !absolute.ok())
    return Problem(absolute.error());
  if (const auto dirty = BooleanQuery(request, "code_dirty"); !dirty.ok())
    return Problem(dirty.error());
  sweepfile::Parsed parsed = ParseSweepFile(request, algorithms_);
  if (!parsed.spec) return Refuse(parsed.faults);
  const auto earlier = FindRequested(*key);
  if (!earlier.ok()) return Problem(earlier.error());
  if (*earlier) return AnswerCreated(request, **earlier);
  if (auto refusal = RefuseUndefinedSecrets(*parsed.spec)) return *std::move(refusal);
  if (const Status usable = ChooseStore(*parsed.spec); !usable.ok())
    return RefuseBody(usable.error(), request.body);
  std::vector<std::shared_ptr<void>> kept;  // until the sweep is created
  if (const auto& code = parsed.spec->program.code) {
    if (code_ != nullptr) kept.push_back(code_->Keep(code->digest));
    if (kept.empty() || !kept.front()) return RequireCode(request, *code);
    if (const Status applied = ApplyPatches(*parsed.spec, kept); !applied.ok())
      return RefuseBody(applied.error(), request.body);
  }
  CreateSweep command{*std::move(parsed.spec), request.body, *std::move(key), request.actor};
  command.path = PathOf(request);
  const auto id = CreateOrFind(std::move(command), request.actor);
  return id.ok() ? AnswerCreated(request, *id) : RefuseBody(id.error(), request.body);
}

Response Sweeps::AnswerCreated(const Request& request, SweepId id) {
  Response created = answers_.Sweep(request, id, 201);
  if (created.status == 201) created.Set("Location", "/api/v1/sweeps/" + ToString(id));
  return created;
}

Response Sweeps::Validate(const Request& request, const Target&) {
  if (const Status absolute = CheckDirectory(request); !absolute.ok())
    return Problem(absolute.error());
  sweepfile::Parsed parsed = ParseSweepFile(request, algorithms_);
  if (!parsed.spec) return Refuse(parsed.faults);
  if (auto refusal = RefuseUndefinedSecrets(*parsed.spec)) return *std::move(refusal);
  if (const Status usable = ChooseStore(*parsed.spec); !usable.ok())
    return RefuseBody(usable.error(), request.body);
  const auto taken = WarmStartsOf(*parsed.spec);
  if (!taken.ok()) return RefuseBody(taken.error(), request.body);
  rest::ValidatedSweep validated{.resolved = sweepfile::ToJson(*parsed.spec),
                                 .rungs = RenderSteps(answers_.RungsOf(*parsed.spec))};
  for (const WarmStart& start : *taken) validated.warm_start.push_back(start.text);
  validated.warnings = SecretWarnings(parsed.spec->program);
  return Render(validated);
}

Response Sweeps::List(const Request& request, const Target&) {
  const auto size = IntegerQuery(request, "page_size", kSweepsPageDefault, 1, kSweepsPageMax);
  if (!size.ok()) return Problem(size.error());
  const auto before = ParsePageToken("sweeps", request);
  if (!before.ok()) return Problem(before.error());
  std::optional<SweepId> bound;
  if (*before) bound = SweepId(**before);
  auto sweeps = reader_.Sweeps(bound, static_cast<int>(*size) + 1);
  if (!sweeps.ok()) return Problem(sweeps.error());

  std::string next;
  if (std::ssize(*sweeps) > *size) {
    sweeps->pop_back();
    next = PageToken("sweeps", sweeps->back().id.value);
  }
  return Render(rest::SweepList{.sweeps = answers_.Sweeps(*sweeps), .next_page_token = next});
}

Response Sweeps::Get(const Request& request, const Target& target) {
  return answers_.Sweep(request, target.sweep());
}

Response Sweeps::Resolved(const Request& request, const Target& target) {
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  return Render(
      rest::ResolvedSweep{.resolved = sweepfile::ToJson(VisibleSpec(request, sweep->spec))});
}

Response Sweeps::Importance(const Request& request, const Target& target) {
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  const SweepSpec& spec = sweep->spec;
  const auto metric = MetricToCompare(request, *sweep);
  if (!metric.ok()) return Problem(metric.error());
  const auto compared = reader_.CompareTrials(
      sweep->id, *metric, {.rungs = answers_.RungsOf(spec), .last = spec.max_step}, request.left);
  if (!compared.ok()) return Problem(compared.error());
  const Importances importances = ImportancesOf(spec.space, *metric, compared->results);
  return Render(RenderImportance(*metric, compared->step, importances));
}

Response Sweeps::Cost(const Request&, const Target& target) {
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  const auto uses = reader_.Uses(target.sweep());
  if (!uses.ok()) return Problem(uses.error());
  const Time now = WallTime();
  return Render(RenderCost(sweep->id, CostOf(*uses, sweep->spec.max_step, now), price_, now));
}

Response Sweeps::Failures(const Request&, const Target& target) {
  const auto failures = reader_.GroupFailures(target.sweep());
  if (!failures.ok()) return Problem(failures.error());
  return Render(RenderFailures(*failures));
}

Response Sweeps::Lineage(const Request& request, const Target& target) {
  constexpr std::string_view kOf = "lineage";
  const auto size = IntegerQuery(request, "page_size", kLineagePageMax, 1, kLineagePageMax);
  if (!size.ok()) return Problem(size.error());
  const auto after = ParsePageToken(kOf, request);
  if (!after.ok()) return Problem(after.error());
  auto branches =
      reader_.Branches(target.sweep(), EventSeq(after->value_or(0)), static_cast<int>(*size) + 1);
  if (!branches.ok()) return Problem(branches.error());
  rest::Lineage lineage;
  if (std::ssize(*branches) > *size) {
    branches->pop_back();
    lineage.next_page_token = PageToken(kOf, branches->back().seq.value);
  }
  for (const Branch& branch : *branches) lineage.branches.push_back(RenderBranch(branch));
  return Render(lineage);
}

Response Sweeps::Activity(const Request& request, const Target& target) {
  constexpr std::string_view kOf = "activity";
  const auto size = IntegerQuery(request, "page_size", kActivityPageDefault, 1, kActivityPageMax);
  if (!size.ok()) return Problem(size.error());
  const auto token = ParsePageToken(kOf, request);
  if (!token.ok()) return Problem(token.error());
  std::optional<EventSeq> before;
  if (*token) before = EventSeq(**token);
  auto actions = reader_.Activity(target.sweep(), before, static_cast<int>(*size) + 1);
  if (!actions.ok()) return Problem(actions.error());
  rest::Activity activity;
  if (std::ssize(*actions) > *size) {
    actions->pop_back();
    activity.next_page_token = PageToken(kOf, actions->back().seq.value);
  }
  for (const UserAction& action : *actions) activity.actions.push_back(RenderUserAction(action));
  return Render(activity);
}

}  // namespace attune::server
