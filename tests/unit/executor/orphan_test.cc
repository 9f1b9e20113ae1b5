#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <tuple>

#include "executor/processes/cgroup.h"
#include "executor/processes/environment.h"
#include "system/processes.h"
#include "system/sockets.h"
#include "system/spawn.h"
#include "system/unique_fd.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using testing::HasSubstr;

// The tests run with and without cgroups.
enum class Means { kCgroups, kSweep };

std::filesystem::path ProcFor(Means means) {
  return means == Means::kCgroups ? "/proc" : "/nowhere";
}

// Why cgroups are not available here; empty if they are.
std::string NoCgroups() {
  const TempDir dir;
  const auto cgroups = Cgroups::Make({.identity = dir.path()});
  return cgroups.ok() ? "" : cgroups.error().message;
}

std::string NameOf(const testing::TestParamInfo<Means>& info) {
  return info.param == Means::kCgroups ? "Cgroups" : "Sweep";
}

bool IsGone(pid_t pid) { return pid > 1 && kill(pid, 0) != 0; }

// A process that runs a gang of two ranks and that the test kills.
class Host {
 public:
  Host(const std::filesystem::path& folder, Means means, const std::vector<std::string>& command) {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd writer(ends[1]);
    std::vector<std::string> argv{"host", folder, "2", ProcFor(means)};
    argv.insert(argv.end(), command.begin(), command.end());
    auto host = Spawn({.program = ATTUNE_TEST_GANG_HOST,
                       .argv = argv,
                       .environment = ProgramEnvironment({}),
                       .output_fd = writer.get()});
    EXPECT_TRUE(host.ok()) << host.error().message;
    child_ = std::move(host.value());
    output_.reset(fdopen(ends[0], "r"));
  }

  // Waits for the report of rank 0 and returns the ranks.
  std::vector<pid_t> AwaitReport() {
    std::istringstream started(NextLine());
    std::string word;
    std::vector<pid_t> pids(2);
    started >> word >> pids[0] >> pids[1];
    EXPECT_EQ(word, "started");
    EXPECT_EQ(NextLine(), "reported\n");
    return pids;
  }

  pid_t GuardPid() const {
    for (const pid_t pid : AllProcesses()) {
      if (ReadProcess(pid).parent != child_.pid) continue;
      const std::string command = ReadFile("/proc/" + std::to_string(pid) + "/cmdline");
      if (command.starts_with("attune-guard")) return pid;
    }
    return 0;
  }

  // The host has set a deadline, too.
  void Stop() const {
    kill(child_.pid, SIGUSR1);
    siginfo_t info{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child_.pid), &info, WSTOPPED), 0);
  }
  void Kill() const { kill(child_.pid, SIGKILL); }
  void AwaitEnd() const {
    EXPECT_TRUE(WaitForEnd(child_.pidfd.get()));
    EXPECT_EQ(Reap(child_.pidfd.get())->signal, SIGKILL);
  }
  pid_t pid() const { return child_.pid; }

 private:
  std::string NextLine() {
    std::array<char, 256> line{};
    return fgets(line.data(), line.size(), output_.get()) ? line.data() : "";
  }

  struct CloseFile {
    void operator()(FILE* file) const { fclose(file); }
  };

  Child child_;
  std::unique_ptr<FILE, CloseFile> output_;
};

std::string RankZeroLog(const std::filesystem::path& folder) {
  return ReadFile(RankLog(Folders(folder).Attempt({.sweep = 1, .trial = 0, .attempt = 1}), 0));
}

class Orphans : public testing::TestWithParam<std::tuple<Means, const char*>> {
 protected:
  void SetUp() override {
    if (means() == Means::kSweep) return;
    if (const std::string why = NoCgroups(); !why.empty()) GTEST_SKIP() << why;
  }

  Means means() const { return std::get<0>(GetParam()); }
  const char* worker() const { return std::get<1>(GetParam()); }

  // Starts a host and returns its ranks and their descendants.
  std::vector<UniqueFd> Begin() {
    const bool cgroups = means() == Means::kCgroups;
    host_.emplace(
        dir_.path(), means(),
        std::vector<std::string>{worker(), "grandchild", cgroups ? "nobody" : "print:without",
                                 "progress:0", "0/report:1", "hang"});
    std::vector<pid_t> pids = host_->AwaitReport();
    pids.push_back(NumberAfter(RankZeroLog(dir_.path()), "grandchild"));
    if (cgroups) pids.push_back(NumberAfter(RankZeroLog(dir_.path()), "nobody"));
    std::vector<UniqueFd> pidfds;
    for (const pid_t pid : pids) {
      EXPECT_GT(pid, 1);
      pidfds.push_back(OpenPidfd(pid));
      EXPECT_TRUE(pidfds.back());
    }
    return pidfds;
  }

  TempDir dir_;
  std::optional<Host> host_;
};

TEST_P(Orphans, NoneRemainsWhenTheHostIsKilled) {
  const std::vector<UniqueFd> pidfds = Begin();
  host_->Kill();
  for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(WaitForEnd(pidfd.get()));
  host_->AwaitEnd();
}

TEST_P(Orphans, NoneOutlivesTheDeadlineOfAStoppedHost) {
  const std::vector<UniqueFd> pidfds = Begin();
  host_->Stop();
  for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(WaitForEnd(pidfd.get()));
  host_->Kill();
  host_->AwaitEnd();
}

INSTANTIATE_TEST_SUITE_P(SpawnedAndForked, Orphans,
                         testing::Combine(testing::Values(Means::kCgroups, Means::kSweep),
                                          testing::Values(ATTUNE_TEST_PLAIN_WORKER,
                                                          ATTUNE_TEST_LAUNCHABLE_WORKER)));

class LeavingOrphans : public GangFixture, public testing::WithParamInterface<Means> {
 protected:
  void SetUp() override {
    if (GetParam() == Means::kCgroups) {
      if (const std::string why = NoCgroups(); !why.empty()) GTEST_SKIP() << why;
    }
    StartSupervisor({.cgroups = {.proc = ProcFor(GetParam())}});
  }
};

TEST_P(LeavingOrphans, ProcessesOutsideTheGroupAndSessionEndWithTheGang) {
  const GangSpec spec = Script("setsid sleep 1000 & echo orphan $!");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_TRUE(IsGone(NumberAfter(Log(spec), "orphan"))) << Log(spec);
}

TEST_P(LeavingOrphans, AForkedOrphanEndsWithTheGang) {
  for (const char* worker : {ATTUNE_TEST_PLAIN_WORKER, ATTUNE_TEST_LAUNCHABLE_WORKER}) {
    const GangSpec spec = Spec({worker, "daemon"});
    EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
    EXPECT_TRUE(IsGone(NumberAfter(Log(spec), "daemon"))) << Log(spec);
  }
}

TEST_P(LeavingOrphans, SparesOrphansOfAnotherGang) {
  const GangSpec other = Script("(setsid sleep 1000 & echo orphan $!); echo ready; sleep 1000");
  supervisor_->Run(other);
  pid_t orphan = 0;
  while (orphan == 0 && !HasFailure()) {
    ASSERT_EQ(Run(Script("true")).outcome, Outcome::kFinished);
    if (Log(other).find("ready") != std::string::npos) orphan = NumberAfter(Log(other), "orphan");
  }
  ASSERT_EQ(Run(Script("setsid true")).outcome, Outcome::kFinished);
  EXPECT_EQ(kill(orphan, 0), 0);
  supervisor_->Cancel(other.attempt, CancelReason::kUnwanted);
  WaitForEnded(other);
  EXPECT_TRUE(IsGone(orphan));
}

TEST_P(LeavingOrphans, ReapsEndedOrphans) {
  const GangSpec spec = Script("setsid sleep 0 & orphan=$!; wait; setsid true & echo orphan $!");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  // An orphan that ends just after the search is found by the next search.
  while (!IsGone(NumberAfter(Log(spec), "orphan")) && !HasFailure()) Run(Script("true"));
}

TEST_P(LeavingOrphans, DoesNotReapChildrenOfOtherCode) {
  pid_t other = 0;
  StartSupervisor({.cgroups = {.proc = ProcFor(GetParam())},
                   .is_other_child = [&](pid_t pid) { return pid == other; }});
  const auto child = Spawn({.program = "/bin/true", .argv = {"true"}, .environment = {}});
  ASSERT_TRUE(child.ok());
  other = child->pid;
  ASSERT_TRUE(WaitForEnd(child->pidfd.get()));
  Run(Script("true"));
  EXPECT_TRUE(Reap(child->pidfd.get()));
}

INSTANTIATE_TEST_SUITE_P(By, LeavingOrphans, testing::Values(Means::kCgroups, Means::kSweep),
                         NameOf);

// Tests that need cgroups.
class GangCgroups : public GangFixture {
 protected:
  void SetUp() override {
    if (const std::string why = NoCgroups(); !why.empty()) GTEST_SKIP() << why;
    GangFixture::SetUp();
  }

  // A gang that prints its cgroup and then hangs.
  GangSpec StartAnother(const char* worker) {
    const GangSpec other = Spec({worker, "progress:0", "hang"});
    supervisor_->Run(other);
    EXPECT_TRUE(facts_.Wait<FirstStep>(other.attempt));
    return other;
  }
};

TEST_F(GangCgroups, AProcessWithoutEnvironmentEndsWithItsGangOnly) {
  for (const char* worker : {ATTUNE_TEST_PLAIN_WORKER, ATTUNE_TEST_LAUNCHABLE_WORKER}) {
    const GangSpec other = StartAnother(worker);
    const GangSpec spec = Spec({worker, "nobody"}, 2);
    EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
    for (const int rank : {0, 1}) {
      EXPECT_TRUE(IsGone(NumberAfter(Log(spec, rank), "nobody"))) << Log(spec, rank);
    }
    EXPECT_EQ(facts_.Count<Ended>(other.attempt), 0);
    EXPECT_EQ(kill(Pids(other)[0], 0), 0);
    supervisor_->Cancel(other.attempt, CancelReason::kUnwanted);
    WaitForEnded(other);
  }
}

TEST_F(GangCgroups, EndsAForkBomb) {
  // Each process forks the next one and exits, so that every list of processes is out of date.
  const std::string fifo = dir_.path() / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const UniqueFd reader(open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const GangSpec spec =
      Script("exec 9>fifo; env -i setsid sh -c 'f() { f & exit; }; echo x >&9; f' & sleep 0.1");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  char byte = 0;
  ASSERT_EQ(read(reader.get(), &byte, 1), 1) << "the process never ran";
  while (read(reader.get(), &byte, 1) > 0) {
  }
  EXPECT_EQ(read(reader.get(), &byte, 1), 0) << "somebody still holds the other end";
}

TEST_F(GangCgroups, EndsProcessesInANestedCgroupAndRemovesIt) {
  WriteFile(dir_.path() / "hide", R"(
    mount=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
    own=$mount$(sed -n 's/^0:://p' /proc/self/cgroup)
    mkdir $own/below && echo threaded > $own/below/cgroup.type
    mkdir $own/below/deeper && echo threaded > $own/below/deeper/cgroup.type
    echo folder $own/below/deeper
    mkfifo hidden
    env -i setsid sh -c "echo 0 > $own/below/deeper/cgroup.threads && echo hides \$\$ > hidden
                         exec sleep 1000" &
    cat hidden)");
  const GangSpec spec = Script("sh hide");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished) << Log(spec);
  const std::string log = Log(spec);
  EXPECT_TRUE(IsGone(NumberAfter(log, "hides"))) << log;
  std::istringstream lines(log);
  std::string word;
  std::string folder;
  lines >> word >> folder;
  EXPECT_THAT(folder, HasSubstr("/attune-"));
  supervisor_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
}

TEST_F(GangCgroups, RemovesTheFolderWithTheSupervisor) {
  const auto probe = Cgroups::Make({.identity = "another"});
  const std::filesystem::path beside = probe.value()->folder().parent_path();
  const GangSpec spec = Script("sed -n 's,^0::.*/\\(attune-[^/]*\\)/.*,\\1,p' /proc/self/cgroup");
  Run(spec);
  std::istringstream log(Log(spec));
  std::string folder;
  log >> folder;
  ASSERT_TRUE(std::filesystem::exists(beside / folder)) << Log(spec);
  ASSERT_THAT(folder, HasSubstr("attune-"));
  supervisor_.reset();
  EXPECT_FALSE(std::filesystem::exists(beside / folder));
}

TEST_F(GangCgroups, TheDeadlineKillsAllMembersAndNothingThatStartsLater) {
  for (const char* worker : {ATTUNE_TEST_PLAIN_WORKER, ATTUNE_TEST_LAUNCHABLE_WORKER}) {
    const GangSpec spec = Spec({worker, "nobody", "progress:0", "hang"});
    supervisor_->Run(spec);
    ASSERT_TRUE(facts_.Wait<FirstStep>(spec.attempt));
    const UniqueFd nobody = OpenPidfd(NumberAfter(Log(spec), "nobody"));
    ASSERT_TRUE(nobody);
    supervisor_->SetDeadline(SinceStart());
    EXPECT_TRUE(WaitForEnd(nobody.get()));
    EXPECT_EQ(WaitForEnded(spec).failure->signal, SIGKILL);
    const GangSpec next = Spec({worker, "nobody"});
    const Ended ended = Run(next);
    EXPECT_EQ(ended.outcome, Outcome::kFinished)
        << ended.failure.value_or(Failure{}).message << Log(next);
  }
}

class GangCgroupsOf : public GangCgroups, public testing::WithParamInterface<const char*> {};

TEST_P(GangCgroupsOf, TheNextHostEndsProcessesOfAKilledHostAndGuard) {
  const TempDir home;  // another executor's than the fixture's
  const std::string data = home.path();
  Host host(data, Means::kCgroups, {GetParam(), "nobody", "progress:0", "0/report:1", "hang"});
  host.AwaitReport();
  const pid_t nobody = NumberAfter(RankZeroLog(data), "nobody");
  const UniqueFd pidfd = OpenPidfd(nobody);
  ASSERT_TRUE(pidfd);
  const pid_t guard = host.GuardPid();
  ASSERT_GT(guard, 1);
  kill(host.pid(), SIGSTOP);  // so that it does not start a new guard
  kill(guard, SIGKILL);
  host.Kill();
  host.AwaitEnd();
  EXPECT_EQ(kill(nobody, 0), 0) << "no process could end it";

  const auto next = Supervisor::Start({.cgroups = {.identity = data}}, [](const Fact&) {});
  ASSERT_TRUE(next.ok());
  EXPECT_TRUE(WaitForEnd(pidfd.get()));
}

TEST_P(GangCgroupsOf, ALateGuardSparesTheRanksOfTheNextHost) {
  const TempDir home;  // another executor's than the fixture's
  const std::string data = home.path();
  Host host(data, Means::kCgroups, {GetParam(), "progress:0", "0/report:1", "hang"});
  host.AwaitReport();
  const pid_t guard = host.GuardPid();
  ASSERT_GT(guard, 1);
  const UniqueFd guard_end = OpenPidfd(guard);
  ASSERT_TRUE(guard_end);
  kill(guard, SIGSTOP);
  host.Kill();
  host.AwaitEnd();

  StartSupervisor({.cgroups = {.identity = data}});
  const GangSpec next = StartAnother(GetParam());
  kill(guard, SIGCONT);
  EXPECT_TRUE(WaitForEnd(guard_end.get()));
  EXPECT_EQ(facts_.Count<Ended>(next.attempt), 0);
  EXPECT_EQ(kill(Pids(next)[0], 0), 0);
  supervisor_->Cancel(next.attempt, CancelReason::kUnwanted);
  EXPECT_EQ(WaitForEnded(next).outcome, Outcome::kCancelled);
}

INSTANTIATE_TEST_SUITE_P(SpawnedAndForked, GangCgroupsOf,
                         testing::Values(ATTUNE_TEST_PLAIN_WORKER, ATTUNE_TEST_LAUNCHABLE_WORKER));

TEST(NoCgroups, NamesTheReason) {
  const TempDir dir;
  std::filesystem::create_directory(dir.path() / "self");
  const auto why = [&](const std::string& mounts, const std::string& own) {
    WriteFile(dir.path() / "self/mountinfo", mounts);
    WriteFile(dir.path() / "self/cgroup", own);
    return Cgroups::Make({.identity = "a", .proc = dir.path()}).error().message;
  };
  const std::string plain = dir.path().string();
  const auto mount = [](const std::string& root, const std::string& point) {
    return "30 23 0:26 " + root + " " + point + " rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
  };
  EXPECT_THAT(why("31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "1:cpu:/\n"),
              HasSubstr("mounted"));
  EXPECT_THAT(why(mount("/", "/proc"), "0::/\n"), HasSubstr("cannot make /proc/attune-"));
  EXPECT_THAT(why(mount("/", plain), "0::/\n"), HasSubstr("cannot use " + plain + "/attune-"));
  EXPECT_THAT(why(mount("/job", plain), "0::/other\n"),
              testing::AllOf(HasSubstr("'/other'"), testing::EndsWith(" " + plain)));
  EXPECT_THAT(why(mount("/", plain), "0::/../..\n"),
              testing::AllOf(HasSubstr("'/../..'"), testing::EndsWith(" " + plain)));
  std::filesystem::create_directory(dir.path() / "one");
  EXPECT_THAT(why(mount("/job", plain), "1:cpu:/\n0::/job/one\n"),
              HasSubstr("cannot use " + plain + "/one/attune-"));
}

}  // namespace
}  // namespace attune::gang
