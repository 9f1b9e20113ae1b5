#include "cli/client/code_upload.h"

#include <gtest/gtest.h>

#include <string>

namespace attune::cli {
namespace {

rest::RequiredCode Required(const std::string& path, std::vector<std::string> include = {}) {
  return {.path = path, .include = std::move(include), .exclude = {}, .digest = "", .bytes_max = 9};
}

TEST(CodeUpload, AServerGetsOnlyFilesThatTheSweepFileNames) {
  const std::string file = "code: {path: src, include: ['data/*.csv']}\ncommand: [./train]\n";
  EXPECT_TRUE(NamesRequired(file, Required("src", {"data/*.csv"})));
  EXPECT_TRUE(NamesRequired(file, Required(".")));
  EXPECT_FALSE(NamesRequired(file, Required("/home/ada")));
  EXPECT_FALSE(NamesRequired(file, Required("src", {".ssh/id_ed25519"})));
  EXPECT_FALSE(NamesRequired("command: [./train]\n", Required(".")));
  EXPECT_TRUE(NamesRequired(R"({"code": {"path": "a\"b"}})", Required("a\"b")));
}

}  // namespace
}  // namespace attune::cli
