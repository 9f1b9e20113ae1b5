#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/version.h"
#include "cli/doctor/checks.h"
#include "tests/support/golden.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using attune::testing::ExpectGolden;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A host without any problem.
HostFacts GoodHost() {
  HostFacts host;
  host.kernel = "6.1.0-13-amd64";
  host.descriptors = {.soft = 1'024, .hard = 524'288, .server_full = 3'792, .server_least = 320};
  host.memory = {.bytes = 64 * kGiB, .free_bytes = 32 * kGiB, .needed_bytes = kGiB / 4};
  host.cgroups = {.cpus = 16};
  host.shared_memory = {.path = "/dev/shm", .bytes = 32 * kGiB, .free_bytes = 32 * kGiB};
  host.http_port = {.port = 7070};
  host.rpc_port = {.port = 7071};
  host.clock_is_synchronised = true;
  host.data_dir = {.path = "/data",
                   .bytes = 500 * kGiB,
                   .free_bytes = 100 * kGiB,
                   .needed_bytes = kGiB,
                   .free_files = 1'000'000,
                   .needed_files = 10'000};
  host.temporary_dir = {.path = "/tmp", .bytes = 500 * kGiB, .free_bytes = 100 * kGiB};
  host.python = {
      .path = "python3", .version = "3.11.2", .has_attune = true, .attune_version = kVersion};
  return host;
}

Finding FindingOf(const std::string& name, const HostFacts& host, const ServerFacts& server = {}) {
  const std::vector<Finding> findings = Examine(host, server);
  const auto found = std::ranges::find(findings, name, &Finding::name);
  EXPECT_NE(found, findings.end()) << name;
  return found == findings.end() ? Finding{} : *found;
}

Health HealthOf(const std::string& name, const HostFacts& host, const ServerFacts& server = {}) {
  const Finding finding = FindingOf(name, host, server);
  EXPECT_EQ(finding.health == Health::kOk, finding.remedy.empty()) << name;
  EXPECT_THAT(finding.detail, Not(IsEmpty())) << name;
  return finding.health;
}

TEST(Doctor, FindsNothingOnAGoodHost) {
  for (const Finding& finding : Examine(GoodHost(), {})) {
    EXPECT_EQ(finding.health, Health::kOk) << finding.name << ": " << finding.detail;
    EXPECT_EQ(finding.remedy, "") << finding.name;
  }
}

TEST(Doctor, RequiresLinux5_4) {
  HostFacts host = GoodHost();
  for (const auto& [release, health] : {std::pair{"5.4", Health::kOk},
                                        {"5.4.0-150-generic", Health::kOk},
                                        {"10.0", Health::kOk},
                                        {"5.3.18", Health::kMissing},
                                        {"4.19.0", Health::kMissing},
                                        {"", Health::kMissing}}) {
    host.kernel = release;
    EXPECT_EQ(HealthOf("kernel", host), health) << release;
  }
}

TEST(Doctor, RequiresEnoughOpenFiles) {
  HostFacts host = GoodHost();
  const auto health = [&](uint64_t soft, uint64_t hard) {
    host.descriptors.soft = soft;
    host.descriptors.hard = hard;
    return HealthOf("open-files", host);
  };
  EXPECT_EQ(health(kWorkerDescriptors, 3'792), Health::kOk);
  EXPECT_EQ(health(kWorkerDescriptors - 1, 3'792), Health::kWarning);
  EXPECT_EQ(health(kWorkerDescriptors, 3'791), Health::kWarning);
  EXPECT_EQ(health(320, 320), Health::kWarning);
  EXPECT_EQ(health(319, 319), Health::kMissing);
}

TEST(Doctor, RequiresTheMemoryOfAnExecutor) {
  HostFacts host = GoodHost();
  host.memory.free_bytes = host.memory.needed_bytes;
  EXPECT_EQ(HealthOf("memory", host), Health::kOk);
  --host.memory.free_bytes;
  EXPECT_EQ(HealthOf("memory", host), Health::kMissing);
  host.memory = {};  // not known
  EXPECT_EQ(HealthOf("memory", host), Health::kOk);
}

TEST(Doctor, OnlyWarnsWithoutCgroups) {
  HostFacts host = GoodHost();
  host.cgroups.fault = "no cgroup2 filesystem is mounted";
  EXPECT_EQ(HealthOf("cgroups", host), Health::kWarning);
}

TEST(Doctor, RequiresSharedMemory) {
  HostFacts host = GoodHost();
  host.shared_memory.bytes = host.shared_memory.free_bytes = kSharedMemoryBytesMin;
  EXPECT_EQ(HealthOf("shm", host), Health::kOk);
  host.shared_memory.free_bytes = kSharedMemoryBytesMin - 1;
  const std::string remedy_of_full = FindingOf("shm", host).remedy;
  EXPECT_EQ(HealthOf("shm", host), Health::kWarning);
  host.shared_memory.bytes = kSharedMemoryBytesMin - 1;
  EXPECT_EQ(HealthOf("shm", host), Health::kWarning);
  EXPECT_NE(FindingOf("shm", host).remedy, remedy_of_full);
  host.shared_memory.fault = "does not exist";
  EXPECT_EQ(HealthOf("shm", host), Health::kMissing);
}

TEST(Doctor, AcceptsNoGpuButNotABrokenDriver) {
  HostFacts host = GoodHost();
  const auto health = [&](const GpuFacts& gpus) {
    host.gpus = gpus;
    return HealthOf("gpus", host);
  };
  const std::string fault = "NVML cannot begin: Driver/library version mismatch";
  EXPECT_EQ(health({}), Health::kOk);
  EXPECT_EQ(health({.has_library = true, .fault = fault}),
            Health::kOk);  // a container image for GPUs
  EXPECT_EQ(health({.on_bus = 1}), Health::kWarning);
  EXPECT_EQ(health({.on_bus = 1, .has_library = true, .fault = fault}), Health::kMissing);
  EXPECT_EQ(health({.found = 1, .has_library = true, .fault = fault}), Health::kMissing);
  EXPECT_EQ(health({.found = 2}), Health::kWarning);  // executors do not notice broken GPUs
  EXPECT_EQ(health({.found = 2, .has_library = true, .in_driver = 2}), Health::kOk);
  EXPECT_EQ(health({.found = 8, .has_library = true, .in_driver = 2}), Health::kWarning);
  EXPECT_EQ(health({.found = 0, .has_library = true, .in_driver = 1}), Health::kWarning);
  EXPECT_EQ(health({.found = 1, .is_selected = true, .has_library = true, .in_driver = 2}),
            Health::kOk);
  EXPECT_EQ(health({.found = 0, .is_selected = true, .has_library = true, .in_driver = 2}),
            Health::kOk);
  EXPECT_EQ(
      health({.found = 1, .has_library = true, .in_driver = 1, .problems = {"its GPU 0 is lost"}}),
      Health::kMissing);
}

TEST(Doctor, AcceptsPortsThatAttuneUses) {
  HostFacts host = GoodHost();
  host.http_port = {.port = 7070, .is_taken = true, .program = "attune", .pid = 12};
  host.rpc_port = {.port = 7071, .is_taken = true, .program = "nginx", .pid = 13};
  EXPECT_EQ(HealthOf("http-port", host), Health::kOk);
  EXPECT_EQ(HealthOf("rpc-port", host), Health::kWarning);
  EXPECT_THAT(FindingOf("rpc-port", host).detail, HasSubstr("nginx (process 13)"));
  EXPECT_THAT(FindingOf("rpc-port", host).remedy, HasSubstr("--rpc-port"));
  host.http_port = {.port = 7070, .is_taken = true};  // of a process that this user may not see
  EXPECT_EQ(HealthOf("http-port", host), Health::kWarning);
  host.http_port = {.port = 7070, .fault = "Permission denied"};
  EXPECT_EQ(HealthOf("http-port", host), Health::kWarning);
}

TEST(Doctor, WarnsOfAWrongClock) {
  HostFacts host = GoodHost();
  ServerFacts server{.url = "http://box:7070", .version = kVersion};
  const auto health = [&](std::optional<bool> synchronised, std::optional<double> ahead_seconds,
                          double error_seconds = 0) {
    host.clock_is_synchronised = synchronised;
    server.clock_ahead_seconds = ahead_seconds;
    server.clock_error_seconds = error_seconds;
    return HealthOf("clock", host, server);
  };
  EXPECT_EQ(health(true, std::nullopt), Health::kOk);
  EXPECT_EQ(health(std::nullopt, std::nullopt), Health::kOk);
  EXPECT_EQ(health(false, std::nullopt), Health::kWarning);
  EXPECT_EQ(health(false, 0.0), Health::kWarning);
  EXPECT_EQ(health(true, kClockSkewSecondsMax), Health::kOk);
  EXPECT_EQ(health(true, -kClockSkewSecondsMax), Health::kOk);
  EXPECT_EQ(health(true, kClockSkewSecondsMax + 0.1), Health::kWarning);
  EXPECT_EQ(health(true, -kClockSkewSecondsMax - 0.1), Health::kWarning);
  EXPECT_EQ(health(true, kClockSkewSecondsMax + 0.1, 0.2), Health::kOk);  // a slow answer
}

TEST(Doctor, RequiresSpaceForData) {
  HostFacts host = GoodHost();
  host.data_dir.free_bytes = kDataBytesWarning;
  EXPECT_EQ(HealthOf("data-dir", host), Health::kOk);
  --host.data_dir.free_bytes;
  EXPECT_EQ(HealthOf("data-dir", host), Health::kWarning);
  host.data_dir.free_bytes = host.data_dir.needed_bytes;
  EXPECT_EQ(HealthOf("data-dir", host), Health::kWarning);
  --host.data_dir.free_bytes;
  EXPECT_EQ(HealthOf("data-dir", host), Health::kMissing);

  host = GoodHost();
  host.data_dir.free_files = host.data_dir.needed_files;
  EXPECT_EQ(HealthOf("data-dir", host), Health::kOk);
  --host.data_dir.free_files;
  EXPECT_EQ(HealthOf("data-dir", host), Health::kMissing);

  host = GoodHost();
  host.data_dir.fault = "is not writable: Permission denied";
  EXPECT_EQ(HealthOf("data-dir", host), Health::kMissing);
}

TEST(Doctor, RequiresSpaceForTemporaryFiles) {
  HostFacts host = GoodHost();
  host.temporary_dir.free_bytes = kTemporaryBytesWarning;
  EXPECT_EQ(HealthOf("tmp-dir", host), Health::kOk);
  --host.temporary_dir.free_bytes;
  EXPECT_EQ(HealthOf("tmp-dir", host), Health::kWarning);
  host.temporary_dir.fault = "does not exist";
  EXPECT_EQ(HealthOf("tmp-dir", host), Health::kMissing);
}

TEST(Doctor, RequiresTheSameVersionInPython) {
  HostFacts host = GoodHost();
  const auto health = [&](const PythonFacts& python) {
    host.python = python;
    return HealthOf("python", host);
  };
  EXPECT_EQ(health({}), Health::kOk);  // only trials in Python need it
  EXPECT_EQ(health({.path = "python3"}), Health::kWarning);
  EXPECT_EQ(health({.path = "python3", .version = "3.9.0", .has_attune = true}), Health::kOk);
  EXPECT_EQ(health({.path = "python3", .version = "3.8.19", .has_attune = true}), Health::kWarning);
  EXPECT_EQ(health({.path = "python3", .version = "3.11.2"}), Health::kWarning);
  EXPECT_EQ(
      health(
          {.path = "python3", .version = "3.11.2", .has_attune = true, .attune_version = "0.0.9"}),
      Health::kWarning);
}

TEST(Doctor, RequiresTheServersVersion) {
  const HostFacts host = GoodHost();
  EXPECT_EQ(HealthOf("server", host, {}), Health::kOk);  // there is none yet
  EXPECT_EQ(HealthOf("server", host, {.url = "http://box:7070", .version = kVersion}), Health::kOk);
  EXPECT_EQ(HealthOf("server", host, {.url = "http://box:7070", .version = "0.0.9"}),
            Health::kMissing);
  const ServerFacts silent{.url = "http://box:7070", .fault = "it does not answer", .remedy = "…"};
  EXPECT_EQ(HealthOf("server", host, silent), Health::kWarning);
  ServerFacts named = silent;
  named.is_named = true;
  EXPECT_EQ(HealthOf("server", host, named), Health::kMissing);
}

// The details and remedies of everything that is wrong with the host.
std::string Problems(const HostFacts& host, const ServerFacts& server = {}) {
  std::string text;
  for (const Finding& finding : Examine(host, server)) {
    if (finding.health == Health::kOk) continue;
    text += finding.name + ": " + finding.detail + "\n    " + finding.remedy + "\n";
  }
  return text;
}

TEST(Doctor, ExplainsEachProblem) {
  HostFacts host = GoodHost();
  host.kernel = "4.19.0";
  host.descriptors.soft = 256;
  host.memory.free_bytes = kGiB / 8;
  host.cgroups.fault = "no cgroup2 filesystem is mounted";
  host.shared_memory.bytes = host.shared_memory.free_bytes = kGiB / 16;
  host.gpus = {.on_bus = 1};
  host.http_port = {.port = 7070, .is_taken = true};
  host.rpc_port = {.port = 7071, .is_taken = true, .program = "nginx", .pid = 13};
  host.clock_is_synchronised = false;
  host.data_dir.free_bytes = kGiB / 2;
  host.temporary_dir.free_bytes = kGiB / 64;
  host.python = {.path = "python3", .version = "3.8.19", .has_attune = true};
  std::string text = Problems(host);

  host = GoodHost();
  host.descriptors.soft = host.descriptors.hard = 256;
  host.shared_memory.fault = "does not exist";
  host.gpus = {.found = 8, .has_library = true, .in_driver = 2};
  host.http_port = {.port = 7070, .fault = "Permission denied"};
  host.data_dir.free_files = 9;
  host.temporary_dir.fault = "does not exist";
  host.python = {.path = "python3", .version = "3.11.2"};
  text += "\n" + Problems(host);
  ExpectGolden("cli/doctor", text);
}

class DoctorCommand : public ::testing::Test {
 protected:
  DoctorCommand() {
    process_.log_to = [](Output&, LogLevel) {};
    process_.inspect = [this](const std::filesystem::path&) { return host_; };
  }

  Ran Attune(std::vector<std::string> args) {
    args.insert(args.begin(), "doctor");
    if (std::ranges::find(args, "--server") == args.end())
      args.insert(args.end(), {"--data-dir", folder_.path().string()});
    return RunAttune(args, process_, interrupt_);
  }

  ScratchFolder folder_;
  HostFacts host_ = GoodHost();
  Host process_;
  Interrupt interrupt_;
};

TEST_F(DoctorCommand, FailsOnlyIfSomethingIsMissing) {
  EXPECT_EQ(Attune({}).code, ExitCode::kSuccess);
  host_.shared_memory.bytes = host_.shared_memory.free_bytes = 64 << 20;
  EXPECT_EQ(Attune({}).code, ExitCode::kSuccess);
  host_.kernel = "4.19.0";
  EXPECT_EQ(Attune({}).code, ExitCode::kFailure);
}

TEST_F(DoctorCommand, PrintsALineForEachCheckAndARemedyBelow) {
  host_.kernel = "4.19.0";
  const std::string out = Attune({}).out;
  EXPECT_THAT(out, HasSubstr("ok       attune      "));
  EXPECT_THAT(out, ContainsRegex("\nmissing  kernel      .*4\\.19\\.0.*\n         "));
}

TEST_F(DoctorCommand, PrintsJson) {
  host_.kernel = "4.19.0";
  const Ran ran = Attune({"-o", "json"});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_EQ(ran.err, "");
  const Json report = Json::parse(ran.out);
  EXPECT_EQ(report.at("ready"), false);
  for (const Json& check : report.at("checks")) {
    const bool is_kernel = check.at("name") == "kernel";
    EXPECT_EQ(check.at("status"), is_kernel ? "missing" : "ok");
    EXPECT_EQ(check.at("remedy").is_string(), is_kernel);
    EXPECT_TRUE(check.at("detail").is_string());
  }
}

TEST_F(DoctorCommand, AsksTheServerForItsVersionAndClock) {
  const FakeServer server;
  const Json report = Json::parse(Attune({"--server", server.url(), "-o", "json"}).out);
  std::map<std::string, std::string> statuses;
  for (const Json& check : report.at("checks")) statuses[check.at("name")] = check.at("status");
  EXPECT_EQ(statuses.at("server"), "missing");
  EXPECT_EQ(statuses.at("clock"), "warning");
}

}  // namespace
}  // namespace attune::cli
