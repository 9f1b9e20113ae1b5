#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sweepfile/codec.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string FileWithCode(const std::string& code, const std::string& more = "") {
  return "command: [bin/../train, --fast]\n" + more + "code: " + code +
         "\nmetric: {name: loss, mode: min}\nparameters: {lr: {value: 1}}\n";
}

TEST(CodeKey, ATextIsThePath) {
  const Program program = Spec(FileWithCode("../src")).program;
  ASSERT_TRUE(program.code);
  EXPECT_EQ(program.code->path, "../src");
  EXPECT_EQ(program.code->digest, "");
  EXPECT_THAT(program.command, ElementsAre("./train", "--fast"));
  EXPECT_EQ(program.working_directory, "");
  EXPECT_FALSE(Spec("command: [/bin/train]\nmetric: {name: loss, mode: min}\n"
                    "parameters: {lr: {value: 1}}\n")
                   .program.code);
}

TEST(CodeKey, AMapHasPatterns) {
  const Program program = Spec(FileWithCode("{include: [a, b], exclude: ['*.csv'], writable: true}",
                                            "working_directory: x/../sub/\n"))
                              .program;
  EXPECT_EQ(program.code->path, ".");
  EXPECT_THAT(program.code->include, ElementsAre("a", "b"));
  EXPECT_THAT(program.code->exclude, ElementsAre("*.csv"));
  EXPECT_TRUE(program.code->writable);
  EXPECT_EQ(program.working_directory, "sub");
}

TEST(CodeKey, TheClientsSnapshotIsUsedUnlessTheFileNamesOne) {
  ParseOptions options = Options();
  options.snapshot = Snapshot{.digest = kDigest, .commit = "abc", .dirty = true};
  Parsed parsed = ParseSweep(FileWithCode("."), options);
  ASSERT_TRUE(parsed.spec);
  EXPECT_EQ(parsed.spec->program.code->digest, kDigest);
  EXPECT_EQ(parsed.spec->program.code->commit, "abc");
  EXPECT_TRUE(parsed.spec->program.code->dirty);
  const std::string other = "sha256:" + std::string(64, 'b');
  parsed = ParseSweep(FileWithCode("{digest: '" + other + "'}"), options);
  EXPECT_EQ(parsed.spec->program.code->digest, other);
  EXPECT_EQ(parsed.spec->program.code->commit, "");
}

TEST(CodeKey, TheResolvedFileReadsBackEqual) {
  ParseOptions options = Options();
  options.snapshot = Snapshot{.digest = kDigest, .commit = "abc", .dirty = false};
  const Parsed parsed = ParseSweep(FileWithCode("{include: [x], writable: true}"), options);
  ASSERT_TRUE(parsed.spec);
  EXPECT_EQ(Spec(ResolvedYaml(*parsed.spec)), *parsed.spec);
  EXPECT_EQ(SpecFromJson(ToJson(*parsed.spec)).value(), *parsed.spec);
}

TEST(CodeKey, RefusesPathsOutsideOfTheCodeAndBadDigests) {
  EXPECT_THAT(FaultsOf(FileWithCode(".", "working_directory: /tmp\n")),
              HasSubstr("working_directory: is outside"));
  EXPECT_THAT(FaultsOf(FileWithCode(".", "working_directory: a/../../b\n")),
              HasSubstr("working_directory: is outside"));
  EXPECT_THAT(FaultsOf("command: [../train]\ncode: .\nmetric: {name: loss, mode: min}\n"
                       "parameters: {lr: {value: 1}}\n"),
              HasSubstr("command[0]: is outside"));
  EXPECT_THAT(FaultsOf(FileWithCode("{digest: sha256:abc}")), HasSubstr("code.digest: "));
  EXPECT_THAT(FaultsOf(FileWithCode("{commit: abc}")), HasSubstr("code.commit: "));
  EXPECT_THAT(FaultsOf(FileWithCode("[a, b]")), HasSubstr("code: expected a map"));
  EXPECT_THAT(FaultsOf(FileWithCode("{pth: .}")), HasSubstr("did you mean path"));
}

}  // namespace
}  // namespace attune::sweepfile
