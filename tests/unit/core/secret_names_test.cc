#include "core/log/secret_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST(SecretNames, MustBeNamesOfShellVariables) {
  for (const char* name : {"A", "_", "WANDB_API_KEY", "key2"})
    EXPECT_TRUE(IsSecretName(name)) << name;
  for (const char* name : {"", "2KEY", "A-B", "A B", "A=B", "../token", "ATTUNE_TOKEN", "Ä"})
    EXPECT_FALSE(IsSecretName(name)) << name;
  EXPECT_TRUE(IsSecretName(std::string(kSecretNameBytesMax, 'A')));
  EXPECT_FALSE(IsSecretName(std::string(kSecretNameBytesMax + 1, 'A')));
}

TEST(SecretNames, AreRecognizedByWholeWords) {
  for (const char* name :
       {"WANDB_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "db_password", "KEY", "GITHUB_PAT"})
    EXPECT_TRUE(LooksLikeSecret(name)) << name;
  for (const char* name :
       {"TOKENIZERS_PARALLELISM", "MAX_TOKENS", "KEYBOARD", "PATH", "", "_", "MONKEY"})
    EXPECT_FALSE(LooksLikeSecret(name)) << name;
}

TEST(SecretNames, CauseWarningsForVariablesOfPrograms) {
  Program program;
  program.environment = {{"OMP_NUM_THREADS", "1"}, {"HF_TOKEN", "hf_1"}};
  EXPECT_THAT(SecretWarnings(program), ElementsAre(StartsWith("env.HF_TOKEN: ")));
}

}  // namespace
}  // namespace attune
