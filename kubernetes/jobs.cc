#include "kubernetes/jobs.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

namespace attune::kubernetes {
namespace {

using pilots::Phase;

constexpr const char* kIndexAnnotation = "batch.kubernetes.io/job-completion-index";
constexpr size_t kReasonBytesMax = 1000;

// Reasons of a container's `waiting` state that are only steps of a normal start.
constexpr std::array<std::string_view, 2> kNormalWaits = {"ContainerCreating", "PodInitializing"};

std::string FormatTime(int64_t seconds) {
  const time_t time = seconds;
  tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  return std::string(text.data(), strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts));
}

bool IsTrue(const Json& conditions, std::string_view type) {
  return TextAt(FindByKey(conditions, "type", type), {"status"}) == "True";
}

// Cuts long messages, because those of Kubernetes may have 32 KB.
std::string Shorten(const std::string& message) {
  if (message.size() <= kReasonBytesMax) return message;
  size_t end = kReasonBytesMax;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
  return message.substr(0, end) + "…";
}

// Returns "REASON: MESSAGE". Both may be empty.
std::string Explain(const std::string& reason, const std::string& message) {
  return reason + (reason.empty() || message.empty() ? "" : ": ") + Shorten(message);
}

// The status of each container of the pod, those of initContainers first.
std::vector<const Json*> ContainersOf(const Json& pod) {
  std::vector<const Json*> containers;
  for (const char* key : {"initContainerStatuses", "containerStatuses"}) {
    const Json& statuses = At(pod, {"status", key});
    if (!statuses.is_array()) continue;
    for (const Json& status : statuses) containers.push_back(&status);
  }
  return containers;
}

// Why the pod does not run yet; empty if it runs.
std::string PendingReason(const Json& pod) {
  const Json& scheduled = FindByKey(At(pod, {"status", "conditions"}), "type", "PodScheduled");
  if (TextAt(scheduled, {"status"}) == "False") {
    const std::string message = Shorten(TextAt(scheduled, {"message"}));
    return message.empty() ? TextAt(scheduled, {"reason"}) : message;
  }
  std::string reason;
  for (const Json* container : ContainersOf(pod)) {
    const Json& waiting = At(*container, {"state", "waiting"});
    if (!waiting.is_object()) continue;
    const std::string name = TextAt(waiting, {"reason"});
    if (std::ranges::find(kNormalWaits, name) == kNormalWaits.end())
      return Explain(name, TextAt(waiting, {"message"}));
    reason = name;
  }
  return reason;
}

// Why the pod has ended, or must end; empty if no reason is known.
std::string EndReason(const Json& pod) {
  const Json& disruption = FindByKey(At(pod, {"status", "conditions"}), "type", "DisruptionTarget");
  if (TextAt(disruption, {"status"}) == "True")
    return Explain(TextAt(disruption, {"reason"}), TextAt(disruption, {"message"}));
  const std::string reason = TextAt(pod, {"status", "reason"});  // such as Evicted
  if (!reason.empty()) return Explain(reason, TextAt(pod, {"status", "message"}));
  for (const Json* container : ContainersOf(pod)) {
    const Json& ended = At(*container, {"state", "terminated"});
    const int64_t code = IntegerAt(ended, {"exitCode"});
    if (code == 0) continue;
    const std::string message = TextAt(ended, {"message"});
    return Explain(TextAt(ended, {"reason"}),
                   message.empty() ? "exit code " + std::to_string(code) : message);
  }
  return "";
}

// When the executor began, and when it ended; 0: not yet.
struct RunTime {
  int64_t began = 0;
  int64_t ended = 0;
};

RunTime RunTimeOf(const Json& pod) {
  const Json& containers = At(pod, {"status", "containerStatuses"});
  if (!containers.is_array() || containers.empty()) return {};
  const Json& state = At(containers[0], {"state"});
  const std::string began = TextAt(state, {"running", "startedAt"});
  return {ParseTime(began.empty() ? TextAt(state, {"terminated", "startedAt"}) : began),
          ParseTime(TextAt(state, {"terminated", "finishedAt"}))};
}

bool IsDeleted(const Json& object) {
  return !TextAt(object, {"metadata", "deletionTimestamp"}).empty();
}

// The pods of a job.
struct PodSummary {
  int running = 0;
  int waiting = 0;              // to be placed or started
  int leaving = 0;              // terminating, or ended
  int64_t began = 0;            // when the first executor began; 0: none
  int64_t ended = 0;            // when the last executor ended
  int64_t deadline = 0;         // the first pod's end by its activeDeadlineSeconds; 0: none
  std::set<std::string> nodes;  // of pods that have not ended
  std::string pending_reason;   // of one of its pods
  std::string end_reason;
};

void AddPod(const Json& pod, PodSummary& summary) {
  const std::string phase = TextAt(pod, {"status", "phase"});
  const bool ended = phase == "Succeeded" || phase == "Failed";
  const auto [began, end] = RunTimeOf(pod);
  if (began > 0 && (summary.began == 0 || began < summary.began)) summary.began = began;
  if (std::string reason = EndReason(pod); !reason.empty()) summary.end_reason = std::move(reason);
  summary.ended = std::max(summary.ended, end);
  if (ended || IsDeleted(pod)) {
    ++summary.leaving;
    return;
  }
  if (std::string node = TextAt(pod, {"spec", "nodeName"}); !node.empty())
    summary.nodes.insert(std::move(node));
  const int64_t start = ParseTime(TextAt(pod, {"status", "startTime"}));
  if (const int64_t seconds = IntegerAt(pod, {"spec", "activeDeadlineSeconds"});
      seconds > 0 && start > 0 && (summary.deadline == 0 || start + seconds < summary.deadline))
    summary.deadline = start + seconds;
  ++(phase == "Running" ? summary.running : summary.waiting);
  if (std::string reason = PendingReason(pod); phase != "Running" && !reason.empty())
    summary.pending_reason = std::move(reason);
}

// The condition of a job that is true after its end; null if it has none.
const Json& EndCondition(const Json& job) {
  const Json& conditions = At(job, {"status", "conditions"});
  return FindByKey(conditions, "type", IsTrue(conditions, "Failed") ? "Failed" : "Complete");
}

// The number of pods that have ended or are ending. Kubernetes deletes an evicted pod, but counts
// it.
int64_t CountEnded(const Json& job, const PodSummary& pods) {
  return std::max<int64_t>(
      pods.leaving, IntegerAt(job, {"status", "succeeded"}) + IntegerAt(job, {"status", "failed"}));
}

// Whether all pods of the job have ended or are ending.
bool IsEnding(const Json& job, const PodSummary& pods) {
  const Json& conditions = At(job, {"status", "conditions"});
  return IsTrue(conditions, "FailureTarget") || IsTrue(conditions, "SuccessCriteriaMet") ||
         (pods.leaving > 0 && pods.running == 0 && pods.waiting == 0);
}

pilots::Job ReadJob(const Json& job, const PodSummary& pods, int64_t now) {
  pilots::Job pilot;
  pilot.name = TextAt(job, {"metadata", "name"});
  pilot.id = pilot.name;
  pilot.nodes = static_cast<int>(std::max<int64_t>(1, IntegerAt(job, {"spec", "parallelism"})));
  for (const std::string& node : pods.nodes) pilot.node += (pilot.node.empty() ? "" : ",") + node;

  int64_t end = now;
  const Json& ended = EndCondition(job);
  if (TextAt(ended, {"status"}) == "True") {
    pilot.phase = Phase::kEnded;
    pilot.state = TextAt(ended, {"type"});
    pilot.reason = pods.end_reason.empty()
                       ? Explain(TextAt(ended, {"reason"}), TextAt(ended, {"message"}))
                       : pods.end_reason;
    end = pods.ended > 0 ? pods.ended : ParseTime(TextAt(ended, {"lastTransitionTime"}));
  } else if (IsDeleted(job)) {
    pilot.phase = Phase::kEnding;
    pilot.state = "Terminating";
    pilot.reason = pods.end_reason;
  } else if (At(job, {"spec", "suspend"}) == Json(true)) {
    pilot.phase = Phase::kPending;
    pilot.state = kSuspended;
  } else if (IsEnding(job, pods)) {
    pilot.phase = Phase::kEnding;
    pilot.state = "Terminating";
    pilot.reason = pods.end_reason;
  } else if (pods.running > 0 && pods.running + CountEnded(job, pods) >= pilot.nodes) {
    // A pilot that has lost a pod runs too: Kubernetes starts no other pod in its place, so the
    // pilot does not wait for one.
    pilot.phase = Phase::kRunning;
    pilot.state = "Running";
    pilot.lost_node = pods.running < pilot.nodes;
    if (pilot.lost_node) pilot.reason = pods.end_reason;
  } else {
    pilot.phase = Phase::kPending;
    pilot.state = "Pending";
    pilot.reason = pods.pending_reason;
  }
  if (pods.began > 0) pilot.ran = std::chrono::seconds(std::max<int64_t>(0, end - pods.began));

  if (pods.deadline > 0) {
    pilot.ends = FormatTime(pods.deadline);
    pilot.left = std::chrono::seconds(std::max<int64_t>(0, pods.deadline - now));
  }
  return pilot;
}

// The pilot that an event is about: its job, or the workload that Kueue makes of the job, which is
// named job-NAME-SUFFIX. Null if it is about none.
pilots::Job* FindSubject(const Json& event, std::vector<pilots::Job>& jobs) {
  const std::string kind = TextAt(event, {"involvedObject", "kind"});
  const std::string name = TextAt(event, {"involvedObject", "name"});
  for (pilots::Job& job : jobs) {
    if (kind == "Job" && name == job.name) return &job;
    if (kind == "Workload" && name.starts_with("job-" + job.name + "-")) return &job;
  }
  return nullptr;
}

// Returns whether an event can say why a job has no pods.
bool IsHindrance(const Json& event) {
  const std::string reason = TextAt(event, {"reason"});
  return TextAt(event, {"type"}) == "Warning" ||
         (TextAt(event, {"involvedObject", "kind"}) == "Workload" && reason == "Pending");
}

}  // namespace

int64_t ParseTime(const std::string& text) {
  tm parts{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return 0;
  return timegm(&parts);
}

std::vector<pilots::Job> ReadJobs(const Json& list, int64_t now) {
  std::vector<pilots::Job> jobs;
  const Json& items = At(list, {"items"});
  if (!items.is_array()) return jobs;
  std::map<std::string, PodSummary> pods;  // by the pilot's number
  for (const Json& item : items)
    if (TextAt(item, {"kind"}) == "Pod")
      AddPod(item, pods[TextAt(item, {"metadata", "labels", kPilotLabel})]);
  for (const Json& item : items)
    if (TextAt(item, {"kind"}) == "Job")
      jobs.push_back(ReadJob(item, pods[TextAt(item, {"metadata", "labels", kPilotLabel})], now));
  return jobs;
}

std::vector<PodName> ReadPodNames(const Json& list) {
  std::vector<PodName> pods;
  const Json& items = At(list, {"items"});
  if (!items.is_array()) return pods;
  for (const Json& item : items)
    if (TextAt(item, {"kind"}) == "Pod")
      pods.push_back({TextAt(item, {"metadata", "name"}),
                      TextAt(item, {"metadata", "annotations", kIndexAnnotation})});
  std::ranges::sort(pods, {}, [](const PodName& pod) { return std::atoi(pod.index.c_str()); });
  return pods;
}

bool NeedsEvents(const pilots::Job& job) {
  return job.phase == Phase::kPending && job.reason.empty();
}

void AddReasonsOfEvents(const Json& events, std::vector<pilots::Job>& jobs) {
  const Json& items = At(events, {"items"});
  if (!items.is_array()) return;
  std::map<std::string, int64_t> newest;  // time of the event that a job's reason comes from
  for (const Json& event : items) {
    if (!IsHindrance(event)) continue;
    pilots::Job* job = FindSubject(event, jobs);
    if (job == nullptr || (!NeedsEvents(*job) && !newest.contains(job->name))) continue;
    const int64_t time = std::max({ParseTime(TextAt(event, {"lastTimestamp"})),
                                   ParseTime(TextAt(event, {"series", "lastObservedTime"})),
                                   ParseTime(TextAt(event, {"eventTime"}))});
    if (newest.contains(job->name) && time < newest[job->name]) continue;
    newest[job->name] = time;
    job->reason = Shorten(TextAt(event, {"message"}));
  }
}

}  // namespace attune::kubernetes
