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

// The code blocks of one language, with the line after each.
std::vector<std::string> CodeBlocks(const std::string& page, const std::string& language) {
  std::vector<std::string> blocks;
  const std::string fence = "```" + language + "\n";
  for (size_t at = page.find(fence); at != page.npos; at = page.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    blocks.push_back(page.substr(begin, page.find("```", begin) - begin));
  }
  return blocks;
}

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

TEST(Reference, ExamplesAreRight) {
  const std::vector<std::string> examples = CodeBlocks(Page(), "yaml");
  ASSERT_GE(examples.size(), 4u);
  for (const std::string& example : examples) Spec(example);
}

}  // namespace
}  // namespace attune::sweepfile
