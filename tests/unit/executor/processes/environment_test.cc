#include "executor/processes/environment.h"

#include <gmock/gmock.h>
#include <stdlib.h>

namespace attune::gang {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

// Sets the variables of a task of a Slurm step in which an executor runs.
class ProgramEnvironmentTest : public testing::Test {
 protected:
  ProgramEnvironmentTest() {
    for (const char* name : kAll) setenv(name, "7", 1);
  }
  ~ProgramEnvironmentTest() override {
    for (const char* name : kAll) unsetenv(name);
  }

  static constexpr const char* kAll[] = {"SLURM_PROCID",
                                         "SLURM_LOCALID",
                                         "SLURM_NODEID",
                                         "SLURM_NTASKS",
                                         "SLURM_NTASKS_PER_NODE",
                                         "SLURM_NPROCS",
                                         "SLURM_STEP_ID",
                                         "PMI_RANK",
                                         "PMIX_RANK",
                                         "OMPI_COMM_WORLD_RANK",
                                         "TORCHELASTIC_USE_AGENT_STORE",
                                         "ATTUNE_TOKEN",
                                         "SLURM_JOB_ID",
                                         "SLURM_TMPDIR",
                                         "SLURM_JOB_NODELIST"};
};

TEST_F(ProgramEnvironmentTest, HasVariablesOfTheJobButNotOfTheTask) {
  const std::vector<std::string> environment = ProgramEnvironment({});
  EXPECT_THAT(environment,
              IsSupersetOf({"SLURM_JOB_ID=7", "SLURM_TMPDIR=7", "SLURM_JOB_NODELIST=7"}));
  EXPECT_THAT(environment,
              Not(Contains(AnyOf(StartsWith("SLURM_PROCID="), StartsWith("SLURM_LOCALID="),
                                 StartsWith("SLURM_NODEID="), StartsWith("SLURM_NTASKS"),
                                 StartsWith("SLURM_NPROCS="), StartsWith("SLURM_STEP_"),
                                 StartsWith("PMI"), StartsWith("OMPI_"),
                                 StartsWith("TORCHELASTIC_"), StartsWith("ATTUNE_TOKEN=")))));
}

TEST_F(ProgramEnvironmentTest, HasTheVariablesOfTheSweep) {
  EXPECT_THAT(ProgramEnvironment({{"SLURM_NTASKS", "3"}, {"PMI_RANK", "0"}, {"PMI_RANK", "1"}}),
              IsSupersetOf({"SLURM_NTASKS=3", "PMI_RANK=1"}));
}

}  // namespace
}  // namespace attune::gang
