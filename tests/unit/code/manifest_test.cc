#include "code/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"

namespace attune::code {
namespace {

using ::testing::HasSubstr;

const std::string kHash(64, 'a');

File FileAt(const std::string& path) { return {.path = path, .bytes = 1, .sha256 = kHash}; }

Manifest Files(const std::vector<std::string>& paths) {
  Manifest manifest;
  for (const std::string& path : paths) manifest.files.push_back(FileAt(path));
  return manifest;
}

Manifest Links(std::vector<Link> links) {
  Manifest manifest = Files({"a/b/c.py", "top.py"});
  manifest.links = std::move(links);
  return manifest;
}

TEST(CodeManifest, ItsTextIsReadBack) {
  Manifest manifest = Links({{"a/up", "../top.py"}, {"link", "a/b"}});
  manifest.files[1].executable = true;
  const Result<Manifest> read = ParseManifest(ToText(manifest));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, manifest);
  EXPECT_EQ(read->bytes(), 2u);
}

TEST(CodeManifest, OtherFormsOfItsTextAreRefused) {
  const std::string text = ToText(Files({"a", "b"}));
  const std::string begin = "attune-code/1\n";
  const std::vector<std::string> others{
      "",
      "attune-code/2\n",
      text.substr(0, text.size() - 1),
      text + "\n",
      text + text,
      begin + "file\t644\t1\t" + kHash + "\tb\n" + "file\t644\t1\t" + kHash + "\ta\n",
      begin + "file\t600\t1\t" + kHash + "\ta\n",
      begin + "file\t644\t01\t" + kHash + "\ta\n",
      begin + "file\t644\t-1\t" + kHash + "\ta\n",
      begin + "file\t644\t1\tabc\ta\n",
      begin + "folder\ta\n"};
  for (const std::string& other : others) {
    const Result<Manifest> read = ParseManifest(other);
    ASSERT_FALSE(read.ok()) << other;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  }
}

TEST(CodeManifest, PathsThatDifferBetweenSystemsAreRefused) {
  for (const std::vector<std::string>& paths :
       std::vector<std::vector<std::string>>{{"../a"},
                                             {"a/../b"},
                                             {"/a"},
                                             {"a//b"},
                                             {"."},
                                             {""},
                                             {"a\nb"},
                                             {"\xff"},
                                             {"Net.py", "net.py"},
                                             {"Lib/a", "lib/b"},
                                             {"a", "a/b"},
                                             {"a", "a"},
                                             {std::string(kPathBytesMax + 1, 'a')}}) {
    EXPECT_EQ(CheckManifest(Files(paths)).error().code, ErrorCode::kInvalid) << paths.front();
  }
  EXPECT_TRUE(CheckManifest(Files({std::string(kPathBytesMax, 'a'), "é/ü x.py"})).ok());
}

TEST(CodeManifest, LinksStayInside) {
  for (const Link& link : std::vector<Link>{{"l", "a"},
                                            {"l", "a/b/c.py"},
                                            {"l", "./a/../top.py"},
                                            {"a/b/l", "../.."},
                                            {"a/l", ".."}}) {
    EXPECT_TRUE(CheckManifest(Links({link})).ok()) << link.target;
  }
  for (const Link& link : std::vector<Link>{{"l", "/etc/passwd"},
                                            {"l", "../x"},
                                            {"a/l", "../../x"},
                                            {"l", "missing"},
                                            {"l", ""},
                                            {"l", "l"},
                                            {"l", "top.py/x"},
                                            {"top.py/l", "a"}}) {
    EXPECT_EQ(CheckManifest(Links({link})).error().code, ErrorCode::kInvalid) << link.target;
  }
}

TEST(CodeManifest, LinksAreFollowedOnTheWayOfALink) {
  EXPECT_TRUE(CheckManifest(Links({{"l", "m/c.py"}, {"m", "a/b"}})).ok());
  // `m/..` is the folder a and not the top, because the kernel follows m first.
  EXPECT_TRUE(CheckManifest(Links({{"l", "m/../b"}, {"m", "a/b"}})).ok());
  EXPECT_FALSE(CheckManifest(Links({{"a/l", "m/../../x"}, {"a/m", "../top"}})).ok());
  const Status circle = CheckManifest(Links({{"l", "m"}, {"m", "l"}}));
  ASSERT_FALSE(circle.ok());
  EXPECT_THAT(circle.error().message, HasSubstr("circle"));
}

TEST(CodeManifest, HasALimitOfEntries) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < kEntriesMax; ++i) paths.push_back(std::to_string(100'000 + i));
  EXPECT_TRUE(CheckManifest(Files(paths)).ok());
  paths.push_back("one");
  EXPECT_FALSE(CheckManifest(Files(paths)).ok());
}

TEST(CodeManifest, RefusesSizesWhoseSumIsNotExact) {
  std::string text = "attune-code/1\n";
  for (const char* path : {"a", "b"})
    text += "file\t644\t9007199254740991\t" + std::string(64, 'a') + "\t" + path + "\n";
  EXPECT_EQ(ParseManifest(text).error().code, ErrorCode::kInvalid);
}

TEST(CodeManifest, RefusesLinksThatTakeLongToFollow) {
  std::string folders;
  for (int i = 0; i < 199; ++i) folders += "a/../";
  std::string text = "attune-code/1\nfile\t644\t1\t" + std::string(64, 'a') + "\ta/f\n";
  for (int i = 100; i < 700; ++i)
    text += "link\t" + folders + (i % 30 == 10 ? "a/f" : "l" + std::to_string(i - 1)) + "\tl" +
            std::to_string(i) + "\n";
  EXPECT_EQ(ParseManifest(text).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace attune::code
