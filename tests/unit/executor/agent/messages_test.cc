#include "executor/agent/messages.h"

#include <gmock/gmock.h>

namespace attune::agent {
namespace {

TEST(Messages, AssignmentBecomesASpecWithItsFolders) {
  v1::Assignment assignment;
  assignment.mutable_attempt()->set_sweep(2);
  assignment.mutable_attempt()->set_trial(5);
  assignment.mutable_attempt()->set_attempt(3);
  v1::NamedValue& lr = *assignment.add_config();
  lr.set_name("lr");
  lr.mutable_value()->set_real(0.1);
  assignment.mutable_resume()->set_step(9);
  assignment.mutable_resume()->set_path("/checkpoint");
  assignment.mutable_resume()->set_digest("sha256:ab");
  assignment.set_stall_timeout_ms(250);
  assignment.set_grace_ms(1500);
  assignment.set_nodes(2);
  assignment.set_max_restarts(4);
  const auto spec = ToSpec(assignment, gang::Folders("/data"));
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(std::get<double>(spec.value().config[0].value), 0.1);
  EXPECT_EQ(spec.value().resume->step, 9);
  EXPECT_EQ(spec.value().resume->digest, "sha256:ab");
  EXPECT_EQ(spec.value().stall_timeout, std::chrono::milliseconds(250));
  EXPECT_EQ(spec.value().grace, std::chrono::milliseconds(1500));
  EXPECT_EQ(spec.value().nodes, 2);
  EXPECT_EQ(spec.value().max_restarts, 4);
  EXPECT_EQ(spec.value().attempt_dir, "/data/sweeps/s2/trials/5/attempts/3");
  EXPECT_EQ(spec.value().checkpoint_dir, "/data/sweeps/s2/trials/5/checkpoints");
}

TEST(Messages, DataFilesHaveTheirUrlsAndVariables) {
  v1::Assignment assignment;
  v1::Data& data = *assignment.mutable_program()->add_data();
  data.set_name("cifar-10");
  data.set_url("https://example.org/cifar.bin");
  data.set_sha256("abc");
  data.set_variable("ATTUNE_DATA_CIFAR_10");
  const auto spec = ToSpec(assignment, gang::Folders("/data"));
  ASSERT_TRUE(spec.ok());
  ASSERT_EQ(spec.value().data.size(), 1u);
  EXPECT_EQ(spec.value().data[0].name, "cifar-10");
  EXPECT_EQ(spec.value().data[0].url, "https://example.org/cifar.bin");
  EXPECT_EQ(spec.value().data[0].sha256, "abc");
  EXPECT_EQ(spec.value().data[0].variable, "ATTUNE_DATA_CIFAR_10");
}

TEST(Messages, AnEnvironmentHasItsFiles) {
  v1::Assignment assignment;
  EXPECT_FALSE(ToSpec(assignment, gang::Folders("/data"))->environment_files);
  v1::Environment& files = *assignment.mutable_program()->mutable_packages();
  files.set_python("uv.lock");
  files.set_wheels("/opt/wheels");
  const auto spec = ToSpec(assignment, gang::Folders("/data"));
  ASSERT_TRUE(spec.ok());
  ASSERT_TRUE(spec->environment_files);
  EXPECT_EQ(spec->environment_files->python, "uv.lock");
  EXPECT_EQ(spec->environment_files->wheels, "/opt/wheels");
}

TEST(Messages, AContainerHasItsImageAndEngine) {
  v1::Assignment assignment;
  v1::Environment& environment = *assignment.mutable_program()->mutable_packages();
  environment.set_container("train:1");
  environment.set_engine("podman");
  const auto spec = ToSpec(assignment, gang::Folders("/data"));
  ASSERT_TRUE(spec.ok());
  EXPECT_FALSE(spec->environment_files);
  EXPECT_EQ(spec->container->image, "train:1");
  EXPECT_EQ(spec->container->engine, "podman");
}

TEST(Messages, ACheckpointToFetchHasItsNameAndSources) {
  v1::Assignment assignment;
  v1::ResumeFrom& resume = *assignment.mutable_resume();
  resume.set_path("/elsewhere/step-9-attempt-2");
  resume.mutable_fetch()->set_sweep(2);
  resume.mutable_fetch()->set_trial(5);
  resume.mutable_fetch()->set_attempt(2);
  resume.mutable_fetch()->set_step(9);
  v1::PieceServer& server = *resume.add_servers();
  server.set_executor("a");
  server.set_address("10.0.0.1");
  server.set_port(4'000);
  server.set_key("key");
  resume.mutable_stored()->set_address("s3://bucket");
  resume.mutable_stored()->set_path("checkpoints/copy");
  v1::NamedValue& variable = *resume.mutable_stored()->add_environment();
  variable.set_name("AWS_REGION");
  variable.mutable_value()->set_text("eu-1");
  const auto spec = ToSpec(assignment, gang::Folders("/data"));
  ASSERT_TRUE(spec.ok());
  const gang::RemoteFiles& fetch = spec.value().fetch.value();
  EXPECT_EQ(gang::ToString(fetch.name), "s2/5/2-9");
  EXPECT_EQ(fetch.folder, "step-9-attempt-2");
  ASSERT_EQ(fetch.servers.size(), 1u);
  EXPECT_EQ(fetch.servers[0].executor, "a");
  EXPECT_EQ(fetch.servers[0].address, "10.0.0.1");
  EXPECT_EQ(fetch.servers[0].port, 4'000);
  EXPECT_EQ(fetch.servers[0].key, "key");
  ASSERT_TRUE(fetch.stored);
  EXPECT_EQ(fetch.stored->address, "s3://bucket");
  EXPECT_EQ(fetch.stored->path, "checkpoints/copy");
  EXPECT_THAT(fetch.stored->environment, testing::ElementsAre(testing::Pair("AWS_REGION", "eu-1")));
}

TEST(Messages, ConvertsAllFieldsOfAFailure) {
  gang::Failure failure{.kind = gang::FailureKind::kSignal,
                        .rank = 2,
                        .signal = 11,
                        .message = "rank 2 was killed",
                        .log_tail = "last \xff words"};
  const v1::Fact fact =
      ToProto(gang::Fact{{.trial = 1}, 42, gang::Ended{gang::Outcome::kFailed, failure}});
  EXPECT_EQ(fact.time_us(), 42);
  EXPECT_EQ(fact.ended().outcome(), v1::Ended::FAILED);
  EXPECT_EQ(fact.ended().failure().kind(), v1::Failure::SIGNAL);
  EXPECT_EQ(fact.ended().failure().rank(), 2);
  EXPECT_EQ(fact.ended().failure().signal(), 11);
  EXPECT_EQ(fact.ended().failure().log_tail(), "last \ufffd words");
}

TEST(Messages, ConvertsTheSilenceOfAFinishedGang) {
  const gang::Ended ended{.silence = "none of its processes spoke"};
  const v1::Fact fact = ToProto(gang::Fact{{.trial = 1}, 42, ended});
  EXPECT_EQ(fact.ended().outcome(), v1::Ended::FINISHED);
  EXPECT_EQ(fact.ended().silence(), "none of its processes spoke");
}

}  // namespace
}  // namespace attune::agent
