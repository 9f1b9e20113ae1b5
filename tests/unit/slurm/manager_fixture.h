#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pilots/manager.h"
#include "pilots/names.h"
#include "slurm/engine.h"
#include "tests/unit/slurm/recorded.h"

namespace attune::slurm {

using pilots::EndAll;
using pilots::FleetFolder;
using pilots::Hindrance;
using pilots::Host;
using pilots::HoursBook;
using pilots::Job;
using pilots::Limits;
using pilots::Manager;
using pilots::ManagerView;
using pilots::PilotName;
using pilots::PilotOf;
using pilots::Resources;
using pilots::Situation;
using std::chrono::seconds;

inline constexpr Resources kNodeResources{.cpus = 16};

// A manager with a fake cluster, a fake server with waiting gangs, and a clock that tests advance.
class SlurmManager : public testing::Test {
 protected:
  SlurmManager() {
    std::string name = (std::filesystem::temp_directory_path() / "attune-slurm-XXXXXX").string();
    data_dir_ = mkdtemp(name.data());
    slurm_.answers["sbatch"] = [this](const auto& argv) { return Sbatch(argv); };
    slurm_.answers["squeue"] = [this](const auto&) { return Squeue(); };
    slurm_.answers["scancel"] = [this](const auto& argv) { return Scancel(argv); };
    StartManager();
  }
  ~SlurmManager() override { std::filesystem::remove_all(data_dir_); }

  // Starts a manager on the folder of a manager that was killed.
  void StartManager() {
    manager_.reset();
    folder_.reset();
    folder_ =
        std::make_unique<FleetFolder>(*FleetFolder::OpenOrCreate(data_dir_, SlurmEngine::Facts()));
    ASSERT_TRUE(folder_->Lock().ok());
    hours_ = std::make_unique<HoursBook>(*HoursBook::Open(folder_->path()));
    engine_ = std::make_unique<SlurmEngine>(
        tools_, folder_->fleet().id,
        SlurmEngine::Submission{.options = {.partition = "main"},
                                .places = {.server = "login:7071", .logs = "/logs"},
                                .script = "/pilot.sh"});
    manager_ = std::make_unique<Manager>(
        *engine_, *folder_, *hours_,
        Manager::Options{.server = "login:7071",
                         .node_resources = kNodeResources,
                         .limits = limits_,
                         .idle = seconds(300)},
        [this]() -> Result<Situation> {
          if (server_away_) return Error{ErrorCode::kUnavailable, "no answer"};
          return situation_;
        },
        [this](const std::string& text) { messages_.push_back(text); },
        [this](const ManagerView& view) { view_ = view; });
  }

  void Step(seconds later = seconds(0)) {
    now_ += later;
    manager_->Step(now_);
  }

  void Demand(int gangs, int workers) {
    situation_.demands = {{.sweep = "s1",
                           .gangs = gangs,
                           .workers = workers,
                           .min_workers = workers,
                           .worker = {.cpus = 16}}};
    if (gangs == 0) situation_.demands.clear();
  }
  std::string Name(int number) const { return PilotName(folder_->fleet().id, number); }

  // The pilot's job runs, and its executor has joined.
  void Join(int number, int cpus_free = 16) {
    queue_.at(Name(number)).state = "RUNNING";
    std::erase_if(situation_.hosts, [&](const Host& host) { return host.name == Name(number); });
    situation_.hosts.push_back({Name(number), kNodeResources, {.cpus = cpus_free}});
  }
  // The pilot's job runs, and the executor of one node has joined.
  void JoinNode(int number, int node, int cpus_free = 16) {
    queue_.at(Name(number)).state = "RUNNING";
    LeaveNode(number, node);
    situation_.hosts.push_back({NodeName(number, node), kNodeResources, {.cpus = cpus_free}});
  }
  void LeaveNode(int number, int node) {
    std::erase_if(situation_.hosts,
                  [&](const Host& host) { return host.name == NodeName(number, node); });
  }
  std::string NodeName(int number, int node) const {
    return Name(number) + "." + std::to_string(node);
  }
  void End(int number, const std::string& state) {
    queue_.at(Name(number)).state = state;
    std::erase_if(situation_.hosts, [&](const Host& host) {
      return PilotOf(folder_->fleet().id, host.name) == Name(number);
    });
  }

  Result<CommandResult> Sbatch(const std::vector<std::string>& argv) {
    if (!refusal_.empty()) return CommandResult{.exit_code = 1, .err = refusal_};
    if (sbatch_hangs_) return Error{ErrorCode::kUnavailable, "`sbatch` did not end within 30 s"};
    for (const std::string& word : argv) {
      if (!word.starts_with("--job-name=")) continue;
      const std::string name = word.substr(11);
      EXPECT_FALSE(queue_.contains(name)) << "submitted twice";
      queue_[name] = {.id = std::to_string(++last_job_),
                      .name = name,
                      .state = "PENDING",
                      .nodes = limits_.nodes_per_pilot};
    }
    return CommandResult{.out = std::to_string(last_job_) + "\n"};
  }
  Result<CommandResult> Squeue() const {
    CommandResult ran;
    const auto time = [](seconds all) {
      return std::to_string(all.count() / 60) + ":" + std::to_string(all.count() % 60);
    };
    for (const auto& [name, job] : queue_)
      ran.out += job.id + "|" + name + "|" + job.state + "|N/A|" + std::to_string(job.nodes) + "|" +
                 time(job.ran) + "|" + (job.left ? time(*job.left) : "UNLIMITED") + "|" + job.node +
                 "|" + (job.reason.empty() ? "None" : job.reason) + "\n";
    return ran;
  }
  Result<CommandResult> Scancel(const std::vector<std::string>& argv) {
    cancelled_.push_back(argv.back());
    return CommandResult{};
  }
  int QueueSize() const { return static_cast<int>(queue_.size()); }

  std::filesystem::path data_dir_;
  RecordedCommands slurm_;
  Tools tools_{slurm_};
  Limits limits_{0, 3};
  Situation situation_;
  bool server_away_ = false;
  bool sbatch_hangs_ = false;
  std::string refusal_;
  std::map<std::string, Job> queue_;
  int last_job_ = 100;
  std::vector<std::string> cancelled_;
  std::vector<std::string> messages_;
  ManagerView view_;
  std::unique_ptr<FleetFolder> folder_;
  std::unique_ptr<SlurmEngine> engine_;
  std::unique_ptr<HoursBook> hours_;
  std::unique_ptr<Manager> manager_;
  Manager::Clock::time_point now_{seconds(1000)};
};

}  // namespace attune::slurm
