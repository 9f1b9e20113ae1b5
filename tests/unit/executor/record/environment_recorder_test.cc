#include "executor/record/environment_recorder.h"

#include <condition_variable>
#include <mutex>

#include "base/message_limits.h"
#include "json/parse.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class EnvironmentRecorderTest : public testing::Test {
 protected:
  // An interpreter with one package of this version.
  void MakeInterpreter(const std::string& version, const std::string& command = ":") {
    gang::WriteFile(folder_.path() / "python3.new",
                    "#!/bin/sh\n" + command + R"(
printf '{"executable":"/opt/python3","version":"3.11.7","packages":{"torch":"%s"},"folders":[]}' )" +
                        version + "\n",
                    true);
    // Clocks of file systems are coarse.
    fs::last_write_time(folder_.path() / "python3.new",
                        fs::file_time_type() + std::chrono::seconds(++interpreters_));
    fs::rename(folder_.path() / "python3.new", folder_.path() / "python3");
  }

  gang::GangSpec Spec(uint64_t sweep, const std::string& command = "python3") const {
    gang::GangSpec spec;
    spec.attempt = {.sweep = sweep, .trial = 1, .attempt = 1, .epoch = 1};
    spec.program = {.command = {command, "train.py"},
                    .environment = {{"PATH", folder_.path()}, {"SECRET", "hunter2"}},
                    .working_directory = folder_.path()};
    return spec;
  }

  std::unique_ptr<EnvironmentRecorder> Start(EnvironmentRecorder::Options options = {}) {
    options.version = "1.2.3";
    return std::make_unique<EnvironmentRecorder>(
        options, [this](const gang::AttemptId& attempt, std::string record) {
          const std::lock_guard lock(mutex_);
          attempts_.push_back(attempt);
          records_.push_back(std::move(record));
          changed_.notify_all();
        });
  }

  // Waits until this many records were passed on, and returns the last one.
  Json Wait(size_t count) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, gang::kDeadline, [&] { return records_.size() >= count; });
    EXPECT_TRUE(came) << "the record did not come";
    EXPECT_EQ(records_.size(), count);
    return came ? ParseJson<Json>(records_.back()) : Json::object();
  }

  gang::TempDir folder_;
  int interpreters_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<gang::AttemptId> attempts_;
  std::vector<std::string> records_;
};

TEST_F(EnvironmentRecorderTest, RecordsPythonAndTheHost) {
  MakeInterpreter("2.2.0");
  const auto recorder = Start();
  recorder->OnGangStarted(Spec(7));
  const Json record = Wait(1);
  EXPECT_EQ(attempts_.front().sweep, 7u);
  EXPECT_EQ(record["attune"], "1.2.3");
  EXPECT_TRUE(record["libc"].get<std::string>().starts_with("glibc 2."));
  EXPECT_TRUE(record["kernel"].get<std::string>().starts_with("Linux "));
  EXPECT_EQ(record["python"]["executable"], "/opt/python3");
  EXPECT_EQ(record["python"]["version"], "3.11.7");
  EXPECT_EQ(record["python"]["packages"], Json({{"torch", "2.2.0"}}));
  EXPECT_FALSE(record.contains("git"));
  EXPECT_EQ(records_.front().find("hunter2"), std::string::npos);
}

TEST_F(EnvironmentRecorderTest, LeavesOutPythonOfOtherPrograms) {
  const auto recorder = Start();
  recorder->OnGangStarted(Spec(7, "/bin/true"));
  const Json record = Wait(1);
  EXPECT_EQ(record["attune"], "1.2.3");
  EXPECT_FALSE(record.contains("python"));
}

// Python of this host does not run the program.
TEST_F(EnvironmentRecorderTest, RecordsTheContainerInPlaceOfPython) {
  MakeInterpreter("2.2.0");
  const auto recorder = Start();
  gang::GangSpec spec = Spec(7);
  spec.container = gang::Container{
      .image = "train:1",
      .engine = "any",
      .found = gang::ContainerImage{.engine = {gang::ContainerEngine::Kind::kDocker, "/bin/docker"},
                                    .id = "sha256:ab",
                                    .digest = "sha256:cd"}};
  recorder->OnGangStarted(spec);
  const Json record = Wait(1);
  EXPECT_EQ(record["container"], Json({{"image", "train:1"},
                                       {"engine", "docker"},
                                       {"id", "sha256:ab"},
                                       {"digest", "sha256:cd"}}));
  EXPECT_FALSE(record.contains("python"));
}

TEST_F(EnvironmentRecorderTest, PassesARecordOnOncePerSweep) {
  MakeInterpreter("2.2.0");
  const auto recorder = Start({.pause = std::chrono::milliseconds(0)});
  recorder->OnGangStarted(Spec(7));
  Wait(1);
  recorder->OnGangStarted(Spec(7));
  recorder->OnGangStarted(Spec(8));
  Wait(2);
  EXPECT_EQ(attempts_.back().sweep, 8u);
}

TEST_F(EnvironmentRecorderTest, PassesARecordOnWhenItChanges) {
  MakeInterpreter("2.2.0");
  const auto recorder = Start({.pause = std::chrono::milliseconds(0)});
  recorder->OnGangStarted(Spec(7));
  Wait(1);
  for (const std::string version : {"2.3.0", "2.2.0"}) {
    MakeInterpreter(version);
    recorder->OnGangStarted(Spec(7));
    EXPECT_EQ(Wait(version == "2.3.0" ? 2 : 3)["python"]["packages"]["torch"], version);
  }
}

TEST_F(EnvironmentRecorderTest, RepeatsAnEqualRecordAfterAWhile) {
  const auto recorder =
      Start({.pause = std::chrono::milliseconds(0), .repeat_after = std::chrono::milliseconds(0)});
  recorder->OnGangStarted(Spec(7, "/bin/true"));
  Wait(1);
  recorder->OnGangStarted(Spec(7, "/bin/true"));
  Wait(2);
  EXPECT_EQ(records_[0], records_[1]);
}

TEST_F(EnvironmentRecorderTest, PausesBetweenRecordsOfAProgram) {
  MakeInterpreter("2.2.0");
  const auto recorder = Start({.pause = std::chrono::hours(1)});
  recorder->OnGangStarted(Spec(7));
  Wait(1);
  MakeInterpreter("2.3.0");
  recorder->OnGangStarted(Spec(7));
  gang::GangSpec changed = Spec(7);
  changed.program.environment.emplace_back("VIRTUAL_ENV", "/opt/venv");
  recorder->OnGangStarted(changed);
  EXPECT_EQ(Wait(2)["python"]["packages"]["torch"], "2.3.0") << "another program needs no pause";
}

TEST_F(EnvironmentRecorderTest, IsIdleWhenTheRecordWasPassedOn) {
  MakeInterpreter("2.2.0", "/bin/sleep 0.1");
  const auto recorder = Start({.pause = std::chrono::hours(1)});
  recorder->OnGangStarted(Spec(7));
  recorder->OnGangGone(Spec(7).attempt);
  recorder->AwaitIdle();
  EXPECT_EQ(Wait(1)["python"]["version"], "3.11.7");
  recorder->OnGangStarted(Spec(7));  // due in an hour
  recorder->OnGangGone(Spec(7).attempt);
  const auto start = std::chrono::steady_clock::now();
  recorder->AwaitIdle();
  EXPECT_LT(std::chrono::steady_clock::now() - start, EnvironmentRecorder::kIdleTimeout);
}

TEST_F(EnvironmentRecorderTest, DoesNotWaitWhileAGangRuns) {
  MakeInterpreter("2.2.0", "/bin/sleep 1000");
  const auto recorder = Start();
  recorder->OnGangStarted(Spec(7));
  const auto start = std::chrono::steady_clock::now();
  recorder->AwaitIdle();
  EXPECT_LT(std::chrono::steady_clock::now() - start, EnvironmentRecorder::kIdleTimeout);
}

TEST_F(EnvironmentRecorderTest, EndsAnInterpreterThatHangs) {
  MakeInterpreter("2.2.0", "echo > started; exec /bin/sleep 1000");
  auto recorder = Start();
  recorder->OnGangStarted(Spec(7));
  EXPECT_TRUE(gang::AwaitCondition([&] { return fs::exists(folder_.path() / "started"); }));
  recorder.reset();
  EXPECT_TRUE(records_.empty()) << "the record would lack Python";
}

TEST_F(EnvironmentRecorderTest, LeavesOutPackagesThatAreTooManyForAMessage) {
  MakeInterpreter("$(/usr/bin/head -c " + std::to_string(kRecordBytesMax) +
                  " /dev/zero | /usr/bin/tr '\\0' 1)");
  const auto recorder = Start();
  recorder->OnGangStarted(Spec(7));
  const Json record = Wait(1);
  EXPECT_EQ(record["python"]["version"], "3.11.7");
  EXPECT_FALSE(record["python"].contains("packages"));
}

}  // namespace
}  // namespace attune::agent
