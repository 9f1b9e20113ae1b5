#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kubernetes/json.h"
#include "system/command.h"

namespace attune::kubernetes {

// The cluster and namespace of a fleet.
struct Location {
  std::string context;     // of kubectl; empty: the current one, or the cluster of this pod
  std::string name_space;  // must not be empty

  bool operator==(const Location&) const = default;
};

// Calls `kubectl`, so every kubeconfig and every login of a cloud works. Each call runs one
// process. The message of an error is the text that kubectl printed, and often the next step.
//
// - kInvalid: the cluster refuses the request, and would refuse it again.
// - kUnavailable: the API server did not answer, or cannot accept the request now.
// - kNotFound: this machine has no kubectl.
class Tools {
 public:
  // `draft`: a file for objects that kubectl reads; it exists only during a call.
  Tools(Commands& commands, Location location, std::filesystem::path draft)
      : commands_(commands), location_(std::move(location)), draft_(std::move(draft)) {}

  // The name of kubectl's current context; empty in a pod, which has none.
  Result<std::string> CurrentContext();
  // The minor version of the API server: 32 for v1.32.
  Result<int> ServerMinorVersion();

  // Reads an object of Kubernetes from a file in YAML or JSON. Creates nothing.
  Result<Json> ReadObject(const std::filesystem::path& file);
  // The object `kind/name`, such as statefulset/attune.
  Result<Json> Get(const std::string& object);
  // Fails if Create() would be refused. Creates nothing.
  Status CheckCreate(const Json& object);
  // Creates an object. Succeeds if one of this name exists.
  Status Create(const Json& object);
  // Creates an object, or replaces the one of this name.
  Status CreateOrReplace(const Json& object);

  // The jobs and pods with this label, in one call.
  Result<Json> ListJobsAndPods(const std::string& label);
  // The events of the namespace that are about objects of this kind.
  Result<Json> ListEvents(const std::string& kind);

  // Asks the pods of these jobs to end, and does not wait. A job stays listed until its last pod
  // has ended.
  Status DeleteJobs(const std::vector<std::string>& names);
  // Deletes pods at once, also on a host that does not answer.
  Status ForceDeletePods(const std::string& label);
  // Deletes all jobs with this label, and waits until they are gone.
  Status DeleteAllJobs(const std::string& label);
  Status DeleteSecret(const std::string& name);

  // The output of a pod.
  Result<std::string> Logs(const std::string& pod);

 private:
  Result<std::string> Run(std::vector<std::string> argv);
  Result<Json> RunForJson(std::vector<std::string> argv);
  // Runs kubectl with the object in a file.
  Result<std::string> RunWithObject(std::vector<std::string> argv, const Json& object);

  Commands& commands_;
  Location location_;
  std::filesystem::path draft_;
};

}  // namespace attune::kubernetes
