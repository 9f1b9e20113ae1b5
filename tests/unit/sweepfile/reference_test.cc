#include "tests/unit/sweepfile/reference.h"

#include <fstream>
#include <sstream>

#include "sweepfile/keys.h"
#include "sweepfile/schema.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHowTo = "stale; write it anew: cmake --build BUILD --target schema";

std::string ReadFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

std::string Page() { return ReadFile(std::string(ATTUNE_DOCS) + "/reference/sweep-file.md"); }

TEST(Reference, SchemaIsMadeFromTheTable) {
  EXPECT_TRUE(ReadFile(std::string(ATTUNE_DOCS) + "/schemas/sweep-v1.json") ==
              SweepSchema(AllAlgorithms()).dump(2) + "\n")
      << kHowTo;
}

TEST(Reference, TablesOfThePageAreMadeFromTheTable) {
  EXPECT_TRUE(Page().find(std::string(kReferenceBegin) + "\n" + KeyReference(AllAlgorithms()) +
                          std::string(kReferenceEnd)) != std::string::npos)
      << kHowTo;
}

TEST(Reference, EveryKeyIsMentioned) {
  const std::string page = Page();
  for (const Section& section : AllSections(AllAlgorithms())) {
    for (const Key& key : section.keys) EXPECT_THAT(page, HasSubstr("`" + key.name + "`"));
  }
  for (const auto& entry : AllAlgorithms().schedulers()) {
    for (const Option& option : entry.options) {
      EXPECT_THAT(page, HasSubstr("`" + option.name + "`")) << entry.name;
    }
  }
}

}  // namespace
}  // namespace attune::sweepfile
