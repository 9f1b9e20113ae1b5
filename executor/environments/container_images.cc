#include "executor/environments/container_images.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "base/message_limits.h"
#include "executor/environments/build_steps.h"
#include "executor/processes/environment.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using gang::ContainerImage;

constexpr size_t kImageKeyDigits = 16;
constexpr size_t kPullErrorLines = 10;
constexpr size_t kPullErrorBytesMax = 2048;
constexpr int kPullLinesMax = 1000;  // of a pull in the log of a rank

std::string DescribeEnd(std::optional<ExitStatus> status) {
  if (!status) return "ended, but nobody knows how";
  return status->signal != 0 ? "was killed by signal " + std::to_string(status->signal)
                             : "ended with exit code " + std::to_string(status->exit_code);
}

}  // namespace

void ContainerImages::Fetch(const gang::GangSpec& spec) {
  const std::string& image = spec.container->image;
  Use& use = uses_.insert_or_assign(spec.attempt, Use{.spec = spec, .key = {}}).first->second;
  if (const Status checked = gang::CheckImageName(image); !checked.ok())
    return Finish(spec.attempt, checked.error());
  const Result<gang::ContainerEngine> engine = gang::FindContainerEngine(spec.container->engine);
  if (!engine.ok()) return Finish(spec.attempt, engine.error());
  use.key = Sha256::HexOf(engine->program.string() + "\n" + image).substr(0, kImageKeyDigits);
  if (std::ranges::find(wanted_, use.key, &Wanted::key) != wanted_.end()) return;
  wanted_.push_back({*engine, image, use.key});
  StartNext();
}

void ContainerImages::StartNext() {
  while (!command_ && !wanted_.empty()) {
    if (const Status started = Start(wanted_.front()); !started.ok()) FinishFirst(started.error());
  }
}

// Starts the first command, or finishes at once if the image is here.
Status ContainerImages::Start(const Wanted& wanted) {
  lines_written_ = 0;
  if (wanted.engine.has_named_containers()) return Run(Step::kInspect);
  std::error_code failed;
  if (gang::IsImageFile(wanted.image)) {
    if (!fs::exists(wanted.image, failed))
      return Invalid("there is no image " + wanted.image + " on this host");
    FinishFirst(ContainerImage{.engine = wanted.engine, .id = wanted.image, .digest = {}});
    return {};
  }
  if (wanted.image.ends_with(".sif"))
    return Invalid("the image " + wanted.image + " is a relative path; write an absolute path");
  if (cache_.Use(wanted.key)) {
    FinishFirst(PulledImage(wanted));
    return {};
  }
  if (Status begun = cache_.Begin(wanted.key); !begun.ok()) return begun;
  const fs::path folder = FileOf(wanted.key).parent_path();
  fs::create_directories(folder, failed);
  if (failed) return SystemError("cannot make " + folder.string(), failed.value());
  return Run(Step::kPull);
}

Status ContainerImages::Run(Step step) {
  const Wanted& wanted = wanted_.front();
  const auto services = services_();
  if (!services.ok()) return services.error();
  step_ = step;
  last_lines_.clear();
  gang::EngineCommand command =
      step == Step::kPull    ? PullCommand(wanted.engine, wanted.image, FileOf(wanted.key))
      : step == Step::kCheck ? CheckCommand(wanted.engine)
                             : InspectCommand(wanted.engine, wanted.image);
  const std::string engine(Name(wanted.engine.kind));
  if (step == Step::kPull) OnLine("[attune] pulling the image " + wanted.image + " with " + engine);
  auto running = RunningCommand::Start(
      *services,
      {.program = command.program,
       .arguments = std::move(command.arguments),
       .environment = gang::ProgramEnvironment(command.environment)},
      {.line = [this](std::string_view line) { OnLine(line); },
       .ended = [this](std::optional<ExitStatus> status) { OnEnded(status); }});
  if (!running.ok()) return running.error();
  command_ = std::move(*running);
  timeout_ = loop_.CallAfter(options_.timeout, [this] {
    command_.reset();
    Fail(wanted_.front(), ErrorCode::kInvalid,
         "it was not ready after " +
             std::to_string(std::chrono::ceil<std::chrono::seconds>(options_.timeout).count()) +
             " s");
    StartNext();
  });
  return {};
}

void ContainerImages::OnLine(std::string_view line) {
  last_lines_.emplace_back(line);
  if (last_lines_.size() > kPullErrorLines) last_lines_.pop_front();
  if (step_ != Step::kPull || ++lines_written_ > kPullLinesMax) return;
  for (auto& [attempt, use] : uses_) {
    if (use.waits && use.key == wanted_.front().key) use.log.Write(use.spec, line);
  }
}

void ContainerImages::OnEnded(std::optional<ExitStatus> status) {
  command_.reset();
  timeout_.Reset();
  const Wanted wanted = wanted_.front();
  const bool succeeded = status && status->ok();
  const bool was_killed = !status || status->signal != 0;
  Status next;
  if (step_ == Step::kInspect && !succeeded) {
    next = Run(Step::kPull);
  } else if (step_ == Step::kPull && succeeded && wanted.engine.has_named_containers()) {
    next = Run(Step::kInspectPulled);
  } else if (step_ == Step::kPull && succeeded) {
    next = cache_.Complete(wanted.key);
    if (next.ok()) FinishFirst(PulledImage(wanted));
  } else if (step_ == Step::kPull) {
    problem_ = "`" + std::string(Name(wanted.engine.kind)) + " pull` " + DescribeEnd(status);
    std::string lines;
    for (const std::string& line : last_lines_) lines += "\n" + line;
    if (!lines.empty()) problem_ += ":" + CutBeginning(lines, kPullErrorBytesMax);
    if (was_killed)
      Fail(wanted, ErrorCode::kUnavailable, problem_);
    else
      next = Run(Step::kCheck);
  } else if (step_ == Step::kCheck) {
    Fail(wanted, succeeded ? ErrorCode::kInvalid : ErrorCode::kUnavailable, problem_);
  } else if (succeeded && !last_lines_.empty()) {
    FinishFirst(ReadInspection(wanted.engine, last_lines_.back()));
  } else {
    Fail(wanted, ErrorCode::kUnavailable,
         "`" + std::string(Name(wanted.engine.kind)) + " image inspect` " + DescribeEnd(status));
  }
  if (!next.ok()) FinishFirst(next.error());
  StartNext();
}

void ContainerImages::Fail(const Wanted& wanted, ErrorCode code, const std::string& why) {
  cache_.Discard(wanted.key);
  FinishFirst(
      Error{code, "the image " + wanted.image + " could not be pulled on this host: " + why});
}

void ContainerImages::FinishFirst(const Result<ContainerImage>& image) {
  timeout_.Reset();
  const Wanted wanted = std::move(wanted_.front());
  wanted_.pop_front();
  std::vector<gang::AttemptId> waiting;
  for (const auto& [attempt, use] : uses_) {
    if (use.waits && use.key == wanted.key) waiting.push_back(attempt);
  }
  for (const gang::AttemptId& attempt : waiting) Finish(attempt, image);
  Evict(options_.bytes_max, options_.kept);
}

void ContainerImages::Finish(const gang::AttemptId& attempt, Result<ContainerImage> image) {
  Use& use = uses_.at(attempt);
  use.waits = false;
  use.log.Close();
  done_(attempt, std::move(image));
}

void ContainerImages::Release(const gang::AttemptId& attempt) {
  const auto released = uses_.extract(attempt);
  if (!released) return;
  const std::string& key = released.mapped().key;
  const auto unwanted = std::ranges::find(wanted_, key, &Wanted::key);
  if (unwanted != wanted_.end() && !IsWanted(key)) {
    if (unwanted == wanted_.begin()) {
      command_.reset();
      timeout_.Reset();
      cache_.Discard(key);
    }
    wanted_.erase(unwanted);
  }
  if (!key.empty()) cache_.Use(key);  // its last use is now
  Evict(options_.bytes_max, options_.kept);
  StartNext();
}

bool ContainerImages::IsWanted(const std::string& key) const {
  return std::ranges::any_of(
      uses_, [&](const auto& each) { return each.second.waits && each.second.key == key; });
}

void ContainerImages::Evict(uint64_t bytes_max, std::chrono::seconds kept) {
  std::set<std::string> in_use;
  for (const auto& [attempt, use] : uses_) in_use.insert(use.key);
  cache_.Evict(bytes_max, kept, in_use);
}

}  // namespace attune::agent
