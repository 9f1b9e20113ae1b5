#include "executor/record/environment_recorder.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/message_limits.h"
#include "executor/record/git_commit.h"
#include "executor/record/located_python.h"
#include "json/parse.h"

namespace attune::agent {
namespace {

using Json = nlohmann::json;

// The nice value of programs that it starts. They may take little from training, but must not take
// minutes if training uses all CPUs.
constexpr int kNice = 10;
constexpr size_t kRequestsMax = 256;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

Json ToJson(const gang::Container& container) {
  const gang::ContainerImage& found = *container.found;
  Json json = {{"image", container.image}, {"engine", Name(found.engine.kind)}, {"id", found.id}};
  if (!found.digest.empty()) json["digest"] = found.digest;
  return json;
}

Json ToJson(const HostDescription& host) {
  Json json = Json::object();
  for (const auto& [name, value] : {std::pair("cpu", &host.cpu),
                                    {"kernel", &host.kernel},
                                    {"os", &host.os},
                                    {"libc", &host.libc}}) {
    if (!value->empty()) json[name] = *value;
  }
  if (!host.gpu_driver.empty()) json["gpu"]["driver"] = host.gpu_driver;
  if (!host.gpu_models.empty()) json["gpu"]["models"] = host.gpu_models;
  return json;
}

}  // namespace

EnvironmentRecorder::EnvironmentRecorder(Options options, Sink sink)
    : options_(std::move(options)),
      sink_(std::move(sink)),
      packages_(options_.python_timeout),
      thread_([this] { Run(); }) {}

EnvironmentRecorder::~EnvironmentRecorder() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  children_.End();
  thread_.join();
}

bool EnvironmentRecorder::Request::IsLike(const Request& other) const {
  return attempt.sweep == other.attempt.sweep && folder == other.folder &&
         program.command.front() == other.program.command.front() &&
         program.environment == other.program.environment;
}

void EnvironmentRecorder::OnGangStarted(const gang::GangSpec& spec) {
  Request request{
      .attempt = spec.attempt,
      .program = spec.program,
      .folder = spec.code ? spec.code->files.code : spec.program.working_directory.string(),
      .has_code = spec.code.has_value(),
      .container = spec.container,
      .due = Clock::now()};
  if (request.program.command.empty()) return;
  const std::lock_guard lock(mutex_);
  gangs_.insert(spec.attempt);
  const auto last = records_.find(spec.attempt.sweep);
  if (last != records_.end() && last->second.request.IsLike(request))
    request.due = std::max(request.due, last->second.time + options_.pause);
  const auto same =
      std::ranges::find_if(requests_, [&](const Request& other) { return request.IsLike(other); });
  if (same != requests_.end()) {
    same->attempt = request.attempt;  // its time stays, so the thread need not wake up
  } else if (requests_.size() < kRequestsMax) {
    requests_.push_back(std::move(request));
    changed_.notify_all();
  }
}

void EnvironmentRecorder::OnGangGone(const gang::AttemptId& attempt) {
  const std::lock_guard lock(mutex_);
  gangs_.erase(attempt);
}

void EnvironmentRecorder::AwaitIdle() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kIdleTimeout, [this] {
    const auto is_due = [](const Request& request) { return request.due <= Clock::now(); };
    return !gangs_.empty() || (!is_collecting_ && std::ranges::none_of(requests_, is_due));
  });
}

void EnvironmentRecorder::Run() {
  setpriority(PRIO_PROCESS, 0, kNice);  // of this thread, which its children inherit
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto next = std::ranges::min_element(requests_, {}, &Request::due);
    if (next == requests_.end()) {
      changed_.wait(lock);
    } else if (next->due > Clock::now()) {
      changed_.wait_until(lock, Clock::time_point(next->due));
    } else {
      Request request = std::move(*next);
      requests_.erase(next);
      is_collecting_ = true;
      lock.unlock();
      Record(std::move(request));
      lock.lock();
      is_collecting_ = false;
      changed_.notify_all();
    }
  }
}

void EnvironmentRecorder::Record(Request request) {
  std::string record = Collect(request);
  const gang::AttemptId attempt = request.attempt;
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;  // programs may have been ended, so parts may be missing
    const Clock::time_point now = Clock::now();
    std::erase_if(records_, [&](const auto& entry) {
      return now - std::max(entry.second.time, entry.second.passed_on) > options_.repeat_after;
    });
    const size_t hash = std::hash<std::string>()(record);
    Recorded& last = records_[attempt.sweep];
    const bool is_known = last.hash == hash && now - last.passed_on < options_.repeat_after;
    last = {.request = std::move(request),
            .time = now,
            .hash = hash,
            .passed_on = is_known ? last.passed_on : now};
    if (is_known) return;
  }
  sink_(attempt, std::move(record));
}

std::string EnvironmentRecorder::Collect(const Request& request) {
  if (!host_) host_ = DescribeHost(options_.has_gpus);
  Json json = ToJson(*host_);
  json["attune"] = options_.version;
  if (request.container && request.container->found) {
    json["container"] = ToJson(*request.container);
  } else if (const auto interpreter = LocatePython(request.program)) {
    if (const std::optional<Python> python =
            packages_.List(*interpreter, request.program, request.folder, children_)) {
      json["python"] = {{"executable", python->executable},
                        {"version", python->version},
                        {"packages", python->packages}};
    }
  }
  // The specification of a sweep has the commit of its code.
  if (!request.has_code) {
    if (const std::optional<GitCommit> git =
            ReadGitCommit(request.program.working_directory, children_, options_.git_timeout)) {
      json["git"]["commit"] = git->commit;
      if (git->dirty) json["git"]["dirty"] = *git->dirty;
    }
  }
  std::string record = Dump(json);
  if (record.size() <= kRecordBytesMax) return record;
  if (const auto python = json.find("python"); python != json.end()) python->erase("packages");
  record = Dump(json);
  return record.size() <= kRecordBytesMax ? record : Dump({{"attune", options_.version}});
}

}  // namespace attune::agent
