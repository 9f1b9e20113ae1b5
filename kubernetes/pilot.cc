#include "kubernetes/pilot.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "kubernetes/jobs.h"
#include "pilots/names.h"

namespace attune::kubernetes {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kJoinFolder = "/var/run/attune";
constexpr const char* kDataFolder = "/var/lib/attune-executor";
constexpr const char* kSharedMemory = "/dev/shm";
constexpr const char* kPodSpec = "spec.template.spec";
constexpr const char* kContainer = "spec.template.spec.containers[0]";
constexpr int kTtlSeconds = 300;  // how long Kubernetes lists a job that has ended

// Checks fields of a template. Keeps the first error.
class Checker {
 public:
  explicit Checker(const std::filesystem::path& file) : file_(file.string()) {}

  void Fail(const std::string& field, const std::string& problem) {
    if (status_.ok()) status_ = Invalid(file_ + ": " + field + ": " + problem);
  }

  // The field must be absent, because Attune writes it.
  void RefuseField(const Json& parent, const std::string& path, const std::string& key) {
    if (!At(parent, {key}).is_null()) Fail(path + "." + key, "Attune writes it; remove it");
  }

  // The field may be absent or have this value.
  void CheckField(const Json& parent, const std::string& path, const std::string& key,
                  const Json& value) {
    const Json& found = At(parent, {key});
    if (!found.is_null() && found != value)
      Fail(path + "." + key,
           "it is " + found.dump() + ", but Attune writes " + value.dump() + "; remove it");
  }

  void RefuseLabels(const Json& metadata, const std::string& path) {
    const Json& labels = At(metadata, {"labels"});
    if (!labels.is_object()) return;
    for (const auto& [name, value] : labels.items())
      if (name.starts_with("attune.dev/"))
        Fail(path + ".labels[" + name + "]", "Attune writes labels of this prefix; remove it");
  }

  const Status& status() const { return status_; }

 private:
  std::string file_;
  Status status_;
};

// The quantity that the container may use: its limit, or else its request. Empty if it has none.
std::string Quantity(const Json& container, const char* resource) {
  for (const char* kind : {"limits", "requests"}) {
    const Json& value = At(container, {"resources", kind, resource});
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number()) return value.dump();
  }
  return "";
}

pilots::Resources ReadResources(const Json& container, Checker& checker) {
  const std::string resources = std::string(kContainer) + ".resources";
  const std::string cpus = Quantity(container, "cpu");
  if (cpus.empty())
    checker.Fail(resources + ".limits.cpu", "write the number of CPUs that an executor may use");
  const double cpu_count = cpus.empty() ? 0 : ParseQuantity(cpus);
  if (!cpus.empty() && cpu_count < 1)
    checker.Fail(resources + ".limits.cpu", "`" + cpus + "` is less than one CPU");
  const std::string gpus = Quantity(container, kGpu);
  const std::string memory = Quantity(container, "memory");
  return {.cpus = static_cast<int>(std::max(0.0, cpu_count)),
          .gpus = gpus.empty() ? 0 : static_cast<int>(std::max(0.0, ParseQuantity(gpus))),
          .memory_bytes =
              memory.empty() ? 0 : static_cast<int64_t>(std::max(0.0, ParseQuantity(memory)))};
}

// The time limit of each pod: the smaller one of the Job's and the pod's. 0: none.
int64_t DeadlineOf(const Json& job) {
  const int64_t of_pod = IntegerAt(job, {"spec", "template", "spec", "activeDeadlineSeconds"});
  const int64_t of_job = IntegerAt(job, {"spec", "activeDeadlineSeconds"});
  return of_pod == 0 || of_job == 0 ? std::max(of_pod, of_job) : std::min(of_pod, of_job);
}

// Kubernetes replaces $(NAME) in commands.
std::string Escape(const std::string& word) {
  std::string escaped;
  for (size_t i = 0; i < word.size(); ++i)
    escaped += word.compare(i, 2, "$(") == 0 ? "$$" : std::string(1, word[i]);
  return escaped;
}

bool IsMounted(const Json& container, const char* path) {
  return FindByKey(At(container, {"volumeMounts"}), "mountPath", path).is_object();
}

Json BuildCommand(const Template& base, const PilotOptions& options, const std::string& name) {
  // The Job controller gives each pod its index in this variable.
  const std::string executor = options.nodes == 1 ? name : name + ".$(JOB_COMPLETION_INDEX)";
  Json command = {"attune",       "executor",
                  "--server",     Escape(options.server),
                  "--token-file", std::string(kJoinFolder) + "/join",
                  "--name",       executor,
                  "--cpus",       std::to_string(base.resources.cpus),
                  "--gpus",       std::to_string(base.resources.gpus),
                  "--data-dir",   kDataFolder,
                  "--give-up",    std::to_string(options.give_up.count()),
                  "--grace",      std::to_string((base.grace - kGraceReserve).count())};
  const auto add = [&](const std::string& option, const std::string& value) {
    command.push_back(option);
    command.push_back(value);
  };
  if (base.resources.memory_bytes > 0)
    add("--memory", std::to_string(base.resources.memory_bytes >> 20) + "MiB");
  if (const int64_t seconds = DeadlineOf(base.job); seconds > 0)
    add("--time-left", std::to_string(seconds));
  for (const std::string& label : options.labels) add("--label", Escape(label));
  if (!IsMounted(base.job["spec"]["template"]["spec"]["containers"][0], kDataFolder))
    command.push_back("--temporary-data");
  return command;
}

// Adds a volume and mounts it.
void AddVolume(Json& pod, Json& container, const std::string& name, const std::string& path,
               const Json& source) {
  Json volume = source;
  volume["name"] = name;
  pod["volumes"].push_back(std::move(volume));
  container["volumeMounts"].push_back({{"name", name}, {"mountPath", path}});
}

void AddVolumes(Json& pod, Json& container, const std::string& fleet) {
  AddVolume(pod, container, "attune-join", kJoinFolder,
            {{"secret", {{"secretName", SecretName(fleet)}, {"defaultMode", 0444}}}});
  if (!IsMounted(container, kDataFolder))
    AddVolume(pod, container, "attune-data", kDataFolder, {{"emptyDir", Json::object()}});
  // Containers have 64 MB of shared memory otherwise, which is too little for NCCL.
  if (!IsMounted(container, kSharedMemory))
    AddVolume(pod, container, "attune-shm", kSharedMemory, {{"emptyDir", {{"medium", "Memory"}}}});
}

void SetDefault(Json& object, const char* key, const Json& value) {
  if (!object.contains(key)) object[key] = value;
}

}  // namespace

double ParseQuantity(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 14> kSuffixes = {{{"", 1},
                                                                              {"n", 1e-9},
                                                                              {"u", 1e-6},
                                                                              {"m", 1e-3},
                                                                              {"k", 1e3},
                                                                              {"M", 1e6},
                                                                              {"G", 1e9},
                                                                              {"T", 1e12},
                                                                              {"P", 1e15},
                                                                              {"Ki", 0x1p10},
                                                                              {"Mi", 0x1p20},
                                                                              {"Gi", 0x1p30},
                                                                              {"Ti", 0x1p40},
                                                                              {"Pi", 0x1p50}}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return -1;
  const std::string_view suffix(end, text.data() + text.size() - end);
  for (const auto& [name, factor] : kSuffixes)
    if (suffix == name) return value * factor;
  return -1;
}

Result<Template> CheckTemplate(Json job, const std::filesystem::path& file) {
  Checker checker(file);
  const std::string kind = TextAt(job, {"apiVersion"}) + " " + TextAt(job, {"kind"});
  if (kind != "batch/v1 Job")
    return Invalid(file.string() + ": it is a " + kind + "; write one Job (apiVersion: batch/v1)");
  const Json& metadata = At(job, {"metadata"});
  const Json& spec = At(job, {"spec"});
  const Json& pod = At(spec, {"template", "spec"});
  for (const char* key : {"name", "generateName", "ownerReferences"})
    checker.RefuseField(metadata, "metadata", key);
  checker.RefuseLabels(metadata, "metadata");
  checker.RefuseLabels(At(spec, {"template", "metadata"}), "spec.template.metadata");
  for (const char* key : {"parallelism", "completions", "podFailurePolicy", "successPolicy",
                          "backoffLimitPerIndex", "selector", "manualSelector"})
    checker.RefuseField(spec, "spec", key);
  checker.CheckField(spec, "spec", "completionMode", "Indexed");
  checker.CheckField(spec, "spec", "backoffLimit", 0);
  checker.CheckField(pod, kPodSpec, "restartPolicy", "Never");

  const Json& containers = At(pod, {"containers"});
  const size_t count = containers.is_array() ? containers.size() : 0;
  if (count != 1) {
    checker.Fail(std::string(kPodSpec) + ".containers",
                 "there are " + std::to_string(count) +
                     ", but a pilot has one, the executor; helpers can be initContainers with "
                     "restartPolicy: Always");
    return checker.status().error();
  }
  const Json& container = containers[0];
  for (const char* key : {"command", "args"}) checker.RefuseField(container, kContainer, key);
  if (FindByKey(At(container, {"env"}), "name", "JOB_COMPLETION_INDEX").is_object())
    checker.Fail(std::string(kContainer) + ".env[JOB_COMPLETION_INDEX]",
                 "Kubernetes writes it; remove it");
  for (const char* volume : {"attune-join", "attune-data", "attune-shm"})
    if (FindByKey(At(pod, {"volumes"}), "name", volume).is_object())
      checker.Fail(std::string(kPodSpec) + ".volumes[" + volume + "]",
                   "Attune writes it; use another name");
  if (FindByKey(At(container, {"volumeMounts"}), "mountPath", kJoinFolder).is_object())
    checker.Fail(std::string(kContainer) + ".volumeMounts",
                 std::string("Attune mounts the token at ") + kJoinFolder + "; use another path");

  const Json& grace = At(pod, {"terminationGracePeriodSeconds"});
  const std::chrono::seconds seconds(grace.is_number_integer() ? grace.get<int64_t>()
                                                               : kGraceDefault.count());
  if (seconds < kGraceMin)
    checker.Fail(std::string(kPodSpec) + ".terminationGracePeriodSeconds",
                 "an executor needs " + std::to_string(kGraceMin.count()) +
                     " s or more to save its trials and to leave");
  const pilots::Resources resources = ReadResources(container, checker);
  if (!checker.status().ok()) return checker.status().error();
  return Template{.job = std::move(job), .grace = seconds, .resources = resources};
}

std::string SecretName(const std::string& fleet) { return "attune-" + fleet; }

Json BuildSecret(const std::string& fleet, const std::string& join, const Json& owner) {
  Json secret = {{"apiVersion", "v1"},
                 {"kind", "Secret"},
                 {"metadata",
                  {{"name", SecretName(fleet)},
                   {"labels", {{"app.kubernetes.io/name", "attune"}, {kFleetLabel, fleet}}}}},
                 {"stringData", {{"join", join + "\n"}}}};
  if (owner.is_object())
    secret["metadata"]["ownerReferences"] = {{{"apiVersion", TextAt(owner, {"apiVersion"})},
                                              {"kind", TextAt(owner, {"kind"})},
                                              {"name", TextAt(owner, {"metadata", "name"})},
                                              {"uid", TextAt(owner, {"metadata", "uid"})}}};
  return secret;
}

Json BuildJob(const Template& base, const PilotOptions& options, const std::string& name) {
  Json job = base.job;
  job.erase("status");
  const std::string number = std::to_string(pilots::PilotNumber(options.fleet, name).value_or(0));
  Json& metadata = job["metadata"];
  metadata.erase("creationTimestamp");
  metadata["name"] = name;
  Json& pod_metadata = job["spec"]["template"]["metadata"];
  if (!pod_metadata.is_object()) pod_metadata = Json::object();
  pod_metadata.erase("creationTimestamp");
  for (Json* labelled : {&metadata, &pod_metadata}) {
    Json& labels = (*labelled)["labels"];
    SetDefault(labels, "app.kubernetes.io/name", "attune");
    labels[kFleetLabel] = options.fleet;
    labels[kPilotLabel] = number;
  }
  if (!options.owner_uid.empty())
    metadata["ownerReferences"] = {{{"apiVersion", "v1"},
                                    {"kind", "Secret"},
                                    {"name", SecretName(options.fleet)},
                                    {"uid", options.owner_uid}}};

  Json& spec = job["spec"];
  spec["parallelism"] = options.nodes;
  spec["completions"] = options.nodes;
  spec["completionMode"] = "Indexed";
  spec["backoffLimit"] = 0;
  SetDefault(spec, "ttlSecondsAfterFinished", kTtlSeconds);
  spec.erase("activeDeadlineSeconds");  // it would include the time in the queue
  Json& pod = spec["template"]["spec"];
  pod["restartPolicy"] = "Never";
  pod["terminationGracePeriodSeconds"] = base.grace.count();
  if (const int64_t seconds = DeadlineOf(base.job); seconds > 0)
    pod["activeDeadlineSeconds"] = seconds;
  if (!pod.contains("serviceAccountName")) SetDefault(pod, "automountServiceAccountToken", false);
  if (options.nodes > 1)
    SetDefault(pod, "topologySpreadConstraints",
               {{{"maxSkew", 1},
                 {"topologyKey", "kubernetes.io/hostname"},
                 {"whenUnsatisfiable", "ScheduleAnyway"},
                 {"labelSelector",
                  {{"matchLabels", {{kFleetLabel, options.fleet}, {kPilotLabel, number}}}}}}});
  Json& container = pod["containers"][0];
  container["command"] = BuildCommand(base, options, name);
  AddVolumes(pod, container, options.fleet);
  return job;
}

}  // namespace attune::kubernetes
