#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kubernetes/pilot.h"
#include "kubernetes/tools.h"
#include "pilots/engine.h"

namespace attune::kubernetes {

// Kubernetes as an engine of pilots. A job's id is its name.
class KubernetesEngine final : public pilots::Engine {
 public:
  // What Submit() creates.
  struct Submission {
    Template base;
    PilotOptions options;
  };

  // The facts without a template.
  static const pilots::EngineFacts& Facts();

  // `tools` must outlive the engine. `grace`: terminationGracePeriodSeconds of the fleet's pods.
  // Without a `submission`, do not call Submit().
  KubernetesEngine(Tools& tools, std::string fleet, std::chrono::seconds grace,
                   std::optional<Submission> submission = std::nullopt);

  const pilots::EngineFacts& facts() const override { return facts_; }
  Result<std::string> Submit(const std::string& pilot) override;
  Result<std::vector<pilots::Job>> Jobs() override;
  Status RequestExit(const std::vector<std::string>& ids) override;
  // Jobs that are already ending lose their pods at once.
  Status Cancel(const std::vector<std::string>& ids) override;
  std::string LogHint(const pilots::Job& job) const override;

 private:
  void AddReasons(std::vector<pilots::Job>& jobs);

  Tools& tools_;
  std::string fleet_;
  std::optional<Submission> submission_;
  pilots::EngineFacts facts_;
  std::map<std::string, pilots::Phase> phases_;  // of the last list, by name
  std::map<std::string, std::string> reasons_;   // from events, which expire
};

// The label selector of all pods of a pilot, or of all of the fleet if `number` is empty.
std::string Selector(const std::string& fleet, const std::string& number = "");

}  // namespace attune::kubernetes
