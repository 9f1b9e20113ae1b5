#include <string>

#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSweepFile = R"(command: [/bin/true]
metric: {name: accuracy, mode: max}
parameters:
  lr: {min: 0.001, max: 0.1}
searcher: {name: random, seed: 7}
scheduler: {name: asha, max: 9}
)";
constexpr const char* kExternalFile = R"(metric: {name: accuracy, mode: max}
parameters:
  lr: {min: 0.001, max: 0.1}
searcher: {name: random, seed: 7}
scheduler: {name: asha, max: 9}
)";
constexpr const char* kHere = "?directory=/opt&file=tiny.yaml";

class StoresTest : public HttpFixture {
 protected:
  // The address of the sweep that the request creates, or "" if it has none.
  std::string CreateAndGetAddress(const std::string& file) {
    const Json sweep = PostJson(std::string("/api/v1/sweeps") + kHere, file, 201);
    const Json resolved =
        GetJson("/api/v1/sweeps/" + sweep.at("id").get<std::string>() + "/resolved").at("resolved");
    return resolved.value("storage", "");
  }
};

TEST_F(StoresTest, ASweepWithoutAnAddressGetsTheServers) {
  EXPECT_EQ(CreateAndGetAddress(kSweepFile), "");
  backend_.default_store = "s3://default";
  EXPECT_EQ(CreateAndGetAddress(kSweepFile), "s3://default");
  EXPECT_EQ(CreateAndGetAddress(std::string(kSweepFile) + "storage: s3://own\n"), "s3://own");
}

TEST_F(StoresTest, ASweepWithoutAProgramGetsNoAddress) {
  backend_.default_store = "s3://refused";
  EXPECT_EQ(CreateAndGetAddress(kExternalFile), "");
}

TEST_F(StoresTest, AStoreThatCannotBeUsedIsRefused) {
  for (const std::string path : {"/api/v1/sweeps", "/api/v1/sweeps:validate"}) {
    const Json problem =
        PostJson(path + kHere, std::string(kSweepFile) + "storage: s3://refused\n", 422);
    EXPECT_THAT(problem.dump(), HasSubstr("not usable"));
    EXPECT_THAT(problem.dump(), HasSubstr("storage"));
  }
}

TEST_F(StoresTest, ACheckpointHasTheUrlOfItsCopy) {
  const std::string path = "/api/v1/sweeps/s1/checkpoints";
  const Json before = GetJson(path).at("checkpoints")[0];
  EXPECT_EQ(before.at("stored"), false);
  EXPECT_TRUE(before.at("stored_url").is_null());
  const CheckpointId id{{SweepId(1), TrialNumber(0)}, 1, Step(3)};
  backend_.Add(CheckpointStored{id, "sha256:03", "s3://bucket"});
  const Json after = GetJson(path).at("checkpoints")[0];
  EXPECT_EQ(after.at("stored"), true);
  EXPECT_EQ(after.at("stored_url"), "s3://bucket/copy");
}

}  // namespace
}  // namespace attune::server
