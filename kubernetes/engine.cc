#include "kubernetes/engine.h"

#include <algorithm>
#include <chrono>

#include "kubernetes/jobs.h"
#include "pilots/names.h"

namespace attune::kubernetes {
namespace {

int64_t SecondsSince1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

const pilots::EngineFacts& KubernetesEngine::Facts() {
  static const pilots::EngineFacts facts{
      .name = "Kubernetes",
      .command = "kubernetes",
      .cleanup =
          "find its pilots with `kubectl get jobs,secrets -l attune.dev/fleet -A` and delete "
          "them",
      .leave_before = std::chrono::seconds(0),  // a pod has its grace after its deadline
      .leave_timeout = kGraceDefault + kGraceReserve,
      .down_timeout = kGraceDefault + kGraceReserve,
      .cancels_ending_jobs = true,
      .place = "namespace",
      .gpu_option = "nvidia.com/gpu in the template"};
  return facts;
}

KubernetesEngine::KubernetesEngine(Tools& tools, std::string fleet, std::chrono::seconds grace,
                                   std::optional<Submission> submission)
    : tools_(tools), fleet_(std::move(fleet)), submission_(std::move(submission)), facts_(Facts()) {
  facts_.leave_timeout = facts_.down_timeout = grace + kGraceReserve;
}

Result<std::string> KubernetesEngine::Submit(const std::string& pilot) {
  const Status created = tools_.Create(BuildJob(submission_->base, submission_->options, pilot));
  if (!created.ok()) return created.error();
  return pilot;
}

Result<std::vector<pilots::Job>> KubernetesEngine::Jobs() {
  const Result<Json> list = tools_.ListJobsAndPods(Selector(fleet_));
  if (!list.ok()) return list.error();
  std::vector<pilots::Job> jobs = ReadJobs(*list, SecondsSince1970());
  AddReasons(jobs);
  phases_.clear();
  for (const pilots::Job& job : jobs) phases_[job.name] = job.phase;
  return jobs;
}

// Only events say why a pilot without pods waits. If they cannot be read, its reason stays empty.
// The last reason is kept, because events expire after an hour.
void KubernetesEngine::AddReasons(std::vector<pilots::Job>& jobs) {
  std::vector<pilots::Job*> waiting;
  for (pilots::Job& job : jobs)
    if (NeedsEvents(job)) waiting.push_back(&job);
  std::vector<std::string> kinds;  // of objects that have such events
  if (!waiting.empty()) kinds.push_back("Job");
  if (std::ranges::find(waiting, kSuspended, &pilots::Job::state) != waiting.end())
    kinds.push_back("Workload");
  for (const std::string& kind : kinds)
    if (const Result<Json> events = tools_.ListEvents(kind); events.ok())
      AddReasonsOfEvents(*events, jobs);
  std::map<std::string, std::string> reasons;
  for (pilots::Job* job : waiting) {
    if (job->reason.empty()) job->reason = reasons_[job->name];
    reasons[job->name] = job->reason;
  }
  reasons_ = std::move(reasons);
}

Status KubernetesEngine::RequestExit(const std::vector<std::string>& ids) {
  return tools_.DeleteJobs(ids);
}

Status KubernetesEngine::Cancel(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    const auto phase = phases_.find(id);
    const auto number = pilots::PilotNumber(fleet_, id);
    if (phase == phases_.end() || phase->second != pilots::Phase::kEnding || !number) continue;
    Status deleted = tools_.ForceDeletePods(Selector(fleet_, std::to_string(*number)));
    if (!deleted.ok()) return deleted;
  }
  return tools_.DeleteJobs(ids);
}

std::string KubernetesEngine::LogHint(const pilots::Job& job) const {
  const auto number = pilots::PilotNumber(fleet_, job.name);
  return "run `attune kubernetes logs " + (number ? std::to_string(*number) : job.name) + "`";
}

std::string Selector(const std::string& fleet, const std::string& number) {
  std::string selector = std::string(kFleetLabel) + "=" + fleet;
  if (!number.empty()) selector += std::string(",") + kPilotLabel + "=" + number;
  return selector;
}

}  // namespace attune::kubernetes
