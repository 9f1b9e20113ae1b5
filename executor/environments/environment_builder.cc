#include "executor/environments/environment_builder.h"

#include <pthread.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "executor/environments/build_steps.h"
#include "logging/log.h"
#include "system/files.h"
#include "system/sha256.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

// Short, because paths of environments are in the first lines of scripts, which have a limit.
constexpr size_t kKeyDigits = 16;
constexpr int kLinesMax = 1000;  // of a build in the log of a rank
constexpr size_t kDescriptionLinesMax = 100;
constexpr std::chrono::seconds kDescriptionTimeout{60};  // file systems of clusters can be slow

bool IsHostFault(const Error& error) {
  return error.code != ErrorCode::kInvalid && error.code != ErrorCode::kNotFound;
}

}  // namespace

EnvironmentBuilder::EnvironmentBuilder(Options options, CommandProcesses& processes, Done done)
    : options_(std::move(options)),
      done_(std::move(done)),
      cache_(options_.folder),
      processes_(processes),
      images_(std::make_unique<ContainerImages>(
          ContainerImages::Options{.folder = options_.images,
                                   .bytes_max = options_.bytes_max,
                                   .kept = options_.kept,
                                   .timeout = options_.timeout},
          loop_, [this] { return StartServices(); },
          [this](const gang::AttemptId& attempt, Result<gang::ContainerImage> image) {
            PassOn(attempt, std::move(image));
          })),
      thread_([this] {
        pthread_setname_np(pthread_self(), "attune-packages");
        loop_.Run();
      }) {}

EnvironmentBuilder::~EnvironmentBuilder() {
  loop_.Post([this] {
    description_timeout_.Reset();
    description_.reset();
    build_.reset();
    images_.reset();
    guard_.reset();
    loop_.Quit();
  });
  thread_.join();
}

void EnvironmentBuilder::Build(gang::GangSpec spec) {
  loop_.Post([this, spec = std::move(spec)]() mutable {
    if (spec.container) return images_->Fetch(spec);
    const gang::AttemptId attempt = spec.attempt;
    uses_.insert_or_assign(attempt, Use{.spec = std::move(spec)});
    to_describe_.push_back(attempt);
    DescribeNext();
  });
}

void EnvironmentBuilder::Release(const gang::AttemptId& attempt) {
  loop_.Post([this, attempt] {
    images_->Release(attempt);
    ReleaseNow(attempt);
  });
}

void EnvironmentBuilder::EvictUnused() {
  loop_.Post([this] {
    images_->EvictUnused();
    Evict(0, {});
  });
}

Result<RunningCommand::Services> EnvironmentBuilder::StartServices() {
  if (!guard_) {
    Result<std::unique_ptr<gang::Guard>> guard = gang::Guard::Start(loop_);
    if (!guard.ok()) return guard.error();
    guard_ = std::move(*guard);
  }
  return RunningCommand::Services{loop_, *guard_, processes_};
}

void EnvironmentBuilder::DescribeNext() {
  while (!description_ && !to_describe_.empty()) {
    const gang::AttemptId attempt = to_describe_.front();
    to_describe_.pop_front();
    if (!uses_.contains(attempt)) continue;
    if (const Status described = Describe(attempt); !described.ok())
      Finish(attempt, described.error());
  }
}

Status EnvironmentBuilder::Describe(const gang::AttemptId& attempt) {
  const gang::Program& program = uses_.at(attempt).spec.program;
  const Result<fs::path> located = LocateInterpreter(program);
  if (!located.ok()) return located.error();
  if (const auto known = interpreters_.Find(*located, program)) {
    Place(attempt, *known);
    return {};
  }
  const auto services = StartServices();
  if (!services.ok()) return services.error();
  description_lines_.clear();
  auto command = RunningCommand::Start(
      *services, DescriptionCommand(*located, program),
      {.line =
           [this](std::string_view line) {
             if (description_lines_.size() < kDescriptionLinesMax)
               description_lines_.emplace_back(line);
           },
       .ended = [this, attempt, located = *located](
                    std::optional<ExitStatus>) { OnDescribed(attempt, located); }});
  if (!command.ok()) return command.error();
  description_ = std::move(*command);
  description_timeout_ = loop_.CallAfter(kDescriptionTimeout, [this, attempt, located = *located] {
    description_lines_ = {"it did not answer"};
    OnDescribed(attempt, located);
  });
  return {};
}

void EnvironmentBuilder::OnDescribed(const gang::AttemptId& attempt, const fs::path& located) {
  description_.reset();
  description_timeout_.Reset();
  if (const auto use = uses_.find(attempt); use != uses_.end()) {
    const Result<Interpreter> interpreter = ReadDescription(located, description_lines_);
    if (interpreter.ok()) {
      interpreters_.Add(located, use->second.spec.program, *interpreter);
      Place(attempt, *interpreter);
    } else {
      Finish(attempt, interpreter.error());
    }
  }
  DescribeNext();
}

Result<EnvironmentBuilder::Inputs> EnvironmentBuilder::ReadInputs(const gang::GangSpec& spec,
                                                                  const Interpreter& interpreter) {
  Result<PackageFiles> files = ReadPackageFiles(*spec.environment_files);
  if (!files.ok()) return files.error();
  const std::string key =
      Sha256::HexOf(files->digest + "\n" + interpreter.path.string() + "\n" + interpreter.version +
                    "\n" + interpreter.platform + "\n" + interpreter.attune.string() + "\n");
  return Inputs{std::move(*files), interpreter, key.substr(0, kKeyDigits)};
}

// Passes the environment to the attempt if it exists, or queues a build.
void EnvironmentBuilder::Place(const gang::AttemptId& attempt, const Interpreter& interpreter) {
  Use& use = uses_.at(attempt);
  Result<Inputs> inputs = ReadInputs(use.spec, interpreter);
  if (!inputs.ok()) return Finish(attempt, inputs.error());
  use.key = inputs->key;
  if (cache_.Use(use.key)) return Finish(attempt, cache_.EnvironmentOf(use.key));
  if (build_)
    use.log.Write(use.spec, to_build_.front().key == use.key
                                ? "[attune] waiting for the environment, which is being built"
                                : "[attune] waiting until another environment is built");
  if (std::ranges::find(to_build_, use.key, &Inputs::key) != to_build_.end()) return;
  to_build_.push_back(std::move(*inputs));
  BuildNext();
}

void EnvironmentBuilder::BuildNext() {
  while (!build_ && !to_build_.empty()) {
    if (Status started = StartBuild(to_build_.front()); !started.ok()) OnBuilt(std::move(started));
  }
}

Status EnvironmentBuilder::StartBuild(const Inputs& inputs) {
  if (Status begun = cache_.Begin(inputs.key); !begun.ok()) return begun;
  if (!HasDiskSpace()) {
    Evict(0, {});
    if (!HasDiskSpace())
      return Error{ErrorCode::kStorageFull,
                   "the disk of " + options_.folder.string() + " has too little free space"};
  }
  const auto services = StartServices();
  if (!services.ok()) return services.error();
  const PackageTool tool = FindPackageTool();
  const fs::path environment = cache_.EnvironmentOf(inputs.key);
  auto steps = BuildSteps(tool, inputs.files, inputs.interpreter, environment);
  if (!steps.ok()) return steps.error();
  build_began_ = gang::Loop::Clock::now();
  lines_written_ = 0;
  WriteLineToAll(inputs.key, "[attune] building the environment of " +
                                 inputs.files.file.filename().string() + " with " + tool.name);
  build_ = std::make_unique<EnvironmentBuild>(
      *services,
      EnvironmentBuild::Plan{.steps = std::move(*steps),
                             .environment = environment,
                             .log = cache_.LogOf(inputs.key),
                             .attune = inputs.interpreter.attune,
                             .timeout = options_.timeout},
      EnvironmentBuild::Events{
          .line = [this, key = inputs.key](std::string_view line) { WriteLineToAll(key, line); },
          .ended = [this](const Status& ended) { OnBuilt(ended); }});
  return build_->Start();
}

bool EnvironmentBuilder::HasDiskSpace() const {
  std::error_code failed;
  const fs::space_info space = fs::space(options_.folder, failed);
  return failed || space.available >= options_.disk_free_bytes_min;
}

void EnvironmentBuilder::OnBuilt(Status built) {
  build_.reset();
  const Inputs inputs = std::move(to_build_.front());
  to_build_.pop_front();
  const auto waiting = std::ranges::find_if(
      uses_, [&](const auto& each) { return each.second.waits && each.second.key == inputs.key; });
  // A file without a snapshot may change at any time.
  const bool has_changed = built.ok() && waiting != uses_.end() &&
                           !HasKey(waiting->second.spec, inputs.interpreter, inputs.key);
  if (built.ok() && !has_changed) built = cache_.Complete(inputs.key);
  if (has_changed || !built.ok()) cache_.Discard(inputs.key);
  if (has_changed) {
    PlaceAgain(inputs.key);
  } else {
    FinishAll(inputs, built);
    Evict(options_.bytes_max, options_.kept);
  }
  BuildNext();
}

bool EnvironmentBuilder::HasKey(const gang::GangSpec& spec, const Interpreter& interpreter,
                                const std::string& key) {
  const Result<Inputs> inputs = ReadInputs(spec, interpreter);
  return inputs.ok() && inputs->key == key;
}

void EnvironmentBuilder::PlaceAgain(const std::string& key) {
  for (const gang::AttemptId& attempt : WaitingFor(key)) {
    Use& use = uses_.at(attempt);
    use.key.clear();
    if (++use.changes > kChangesMax) {
      Finish(attempt, Invalid(use.spec.environment_files->python.string() +
                              " changes again and again while it is installed"));
    } else {
      to_describe_.push_back(attempt);
    }
  }
  DescribeNext();
}

void EnvironmentBuilder::FinishAll(const Inputs& inputs, const Status& built) {
  const double seconds =
      std::chrono::duration<double>(gang::Loop::Clock::now() - build_began_).count();
  if (built.ok()) {
    const std::string line = fmt::format("the environment is ready after {:.1f} s", seconds);
    logging::Info("{}: {}", inputs.files.file.string(), line);
    WriteLineToAll(inputs.key, "[attune] " + line);
  } else {
    logging::Warn("{}: the environment could not be built: {}", inputs.files.file.string(),
                  built.error().message);
  }
  for (const gang::AttemptId& attempt : WaitingFor(inputs.key)) {
    if (built.ok())
      Finish(attempt, cache_.EnvironmentOf(inputs.key));
    else
      Finish(attempt, built.error());
  }
}

void EnvironmentBuilder::Finish(const gang::AttemptId& attempt, Result<fs::path> environment) {
  Use& use = uses_.at(attempt);
  use.waits = false;
  use.log.Close();
  if (environment.ok()) return done_(attempt, {.folder = std::move(*environment), .error = {}});
  const Error& error = environment.error();
  done_(attempt,
        {.folder = {},
         .error = "the environment of " + use.spec.environment_files->python.filename().string() +
                  " could not be built on this host: " + error.message,
         .is_host_fault = IsHostFault(error)});
}

void EnvironmentBuilder::PassOn(const gang::AttemptId& attempt,
                                Result<gang::ContainerImage> image) {
  if (image.ok()) return done_(attempt, {.folder = {}, .image = std::move(*image), .error = {}});
  done_(
      attempt,
      {.folder = {}, .error = image.error().message, .is_host_fault = IsHostFault(image.error())});
}

void EnvironmentBuilder::ReleaseNow(const gang::AttemptId& attempt) {
  const auto released = uses_.extract(attempt);
  if (!released) return;
  const std::string& key = released.mapped().key;
  const auto unwanted = std::ranges::find(to_build_, key, &Inputs::key);
  if (unwanted != to_build_.end() && WaitingFor(key).empty()) {
    if (unwanted == to_build_.begin()) {
      build_.reset();
      cache_.Discard(key);
    }
    to_build_.erase(unwanted);
  }
  if (!key.empty()) cache_.Use(key);  // its last use is now
  Evict(options_.bytes_max, options_.kept);
  BuildNext();
}

std::vector<gang::AttemptId> EnvironmentBuilder::WaitingFor(const std::string& key) const {
  std::vector<gang::AttemptId> attempts;
  for (const auto& [attempt, use] : uses_) {
    if (use.waits && use.key == key) attempts.push_back(attempt);
  }
  return attempts;
}

void EnvironmentBuilder::Evict(uint64_t bytes_max, std::chrono::seconds kept) {
  std::set<std::string> in_use;
  for (const auto& [attempt, use] : uses_) in_use.insert(use.key);
  cache_.Evict(bytes_max, kept, in_use);
}

void EnvironmentBuilder::WriteLineToAll(const std::string& key, std::string_view line) {
  if (lines_written_ > kLinesMax) return;
  const std::string last = "[attune] further lines are in " + cache_.LogOf(key).string();
  const std::string_view written = ++lines_written_ > kLinesMax ? last : line;
  for (const gang::AttemptId& attempt : WaitingFor(key)) {
    Use& use = uses_.at(attempt);
    use.log.Write(use.spec, written);
  }
}

}  // namespace attune::agent
