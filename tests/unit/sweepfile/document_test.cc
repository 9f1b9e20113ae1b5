#include "sweepfile/document.h"

#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Document, SyntaxErrorHasLineAndColumn) {
  EXPECT_THAT(FaultsOf("command: [train\nmetric: {name: loss}\n"), StartsWith("sweep.yaml:2:7: "));
  EXPECT_THAT(FaultsOf("a: 1\n b: 2\n"), StartsWith("sweep.yaml:2:"));
  EXPECT_THAT(FaultsOf("a: 'x"), StartsWith("sweep.yaml:"));
}

TEST(Document, NamesTabsThatIndent) {
  constexpr const char* kTabs = "tabs";
  for (const char* text : {"metric:\n\tname: loss\n", "metric:\n  name: loss\n\tmode: min\n",
                           "parameters:\n  lr:\n  \tmin: 1\n", "command:\n\t- train\n"}) {
    EXPECT_THAT(FaultsOf(text), HasSubstr(kTabs)) << text;
  }
  for (const char* text : {"a: 1\n b:\t2\n", "{\n\t\"a\": 1,\n\t\"b\" 2: 3\n}", "a: 'x"}) {
    EXPECT_THAT(FaultsOf(text), Not(HasSubstr(kTabs))) << text;
  }
}

TEST(Document, LocatesTheFaultOfAnEmptyFile) {
  for (const char* text : {"", "\n\n", "# nothing\n", "---\n", "~", "\xEF\xBB\xBF"}) {
    EXPECT_EQ(PlacesOf(text), "1:1 \n") << text;
  }
}

TEST(Document, MustBeAMap) {
  EXPECT_EQ(PlacesOf("[1, 2]"), "1:1 \n");
  EXPECT_EQ(PlacesOf("train.cc"), "1:1 \n");
}

TEST(Document, DuplicateKeysAreFaults) {
  EXPECT_EQ(PlacesOf(With("name: a\nname: b\n")), "6:1 name\n");
  EXPECT_THAT(FaultsOf(WithParameters("  lr: {value: 1}\n  lr: {value: 2}\n")),
              AllOf(HasSubstr("sweep.yaml:6:3: parameters.lr: "), HasSubstr("line 5")));
}

TEST(Document, ColumnsCountCharacters) {
  EXPECT_THAT(FaultsOf(With("tags: [\"äöü\", [x]]\n")), StartsWith("sweep.yaml:5:15: tags[1]: "));
}

TEST(Document, LocatesBytesThatAreNotUtf8) {
  EXPECT_EQ(PlacesOf("name: a\ntags: [\xFF]\n"), "2:8 \n");
  for (const char* text :
       {"a: \xC0\x80", "a: \xED\xA0\x80", "a: \xF5\x80\x80\x80", "a: \xE2\x82"}) {
    EXPECT_THAT(FaultsOf(text), HasSubstr("UTF-8"));
  }
  EXPECT_THAT(FaultsOf(std::string_view("a: \0b", 5)), HasSubstr("(code 0)"));
}

TEST(Document, NulInAnEscapeIsRefused) {
  EXPECT_THAT(FaultsOf(With("env: {A: \"x\\0y\"}\n")), HasSubstr("env.A: "));
}

TEST(Document, SizeIsLimited) {
  const std::string file = With("");
  const std::string padding(kMaxFileBytes - file.size() - 1, '#');
  Spec(file + padding + "\n");
  EXPECT_THAT(FaultsOf(file + padding + "#\n"), HasSubstr("1048576"));
}

TEST(Document, DepthIsLimited) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_THAT(FaultsOf(nested(kMaxDepth)), Not(HasSubstr("32")));
  EXPECT_THAT(FaultsOf(nested(kMaxDepth + 1)), HasSubstr("at most 32 levels"));
  EXPECT_THAT(FaultsOf(nested(kMaxFileBytes / 2)), HasSubstr("100000 values"));
  EXPECT_FALSE(Parse(std::string(kMaxFileBytes, '{')).spec);
}

TEST(Document, AliasesStandForTheirAnchors) {
  const SweepSpec spec = Spec(
      WithParameters("  a: &range {min: 0.5, max: 1.0}\n  b: *range\n  c: {values: [&x one, two]}\n"
                     "  d: {value: *x}\n"));
  EXPECT_EQ(spec.space.Find("b")->domain, spec.space.Find("a")->domain);
  EXPECT_EQ(spec.space.Find("d")->domain, Domain(ConstantDomain{std::string("one")}));
}

TEST(Document, AliasBombsAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int k = 0; k < 9; ++k) bomb += ", " + last;
    bomb += "]\n";
  }
  EXPECT_THAT(FaultsOf(bomb), HasSubstr("100000 values"));
  EXPECT_THAT(FaultsOf("a: &a [*a]\n"), StartsWith("sweep.yaml:1:8: "));
  EXPECT_THAT(FaultsOf("a: *b\n"), StartsWith("sweep.yaml:1:"));
}

TEST(Document, AliasesDoNotNestDeeperThanTheLimit) {
  std::string file = "a0: &a0 [x]\n";
  for (size_t i = 1; i < kMaxDepth; ++i) {
    const std::string n = std::to_string(i);
    file += "a" + n + ": &a" + n + " [*a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_THAT(FaultsOf(file), HasSubstr("at most 32 levels"));
}

TEST(Document, RefusesTagsOtherKeysAndSecondDocuments) {
  EXPECT_THAT(FaultsOf(With("max_concurrent_trials: !!int 3\n")),
              HasSubstr("max_concurrent_trials: "));
  EXPECT_EQ(Spec(WithParameters("  a: {value: !!str 3}\n")).space.Find("a")->domain,
            Domain(ConstantDomain{std::string("3")}));
  EXPECT_THAT(FaultsOf(With("? [a, b]\n: 1\n")), StartsWith("sweep.yaml:5:"));
  EXPECT_THAT(FaultsOf(With("---\nname: b\n")), StartsWith("sweep.yaml:"));
  EXPECT_THAT(FaultsOf(WithParameters("  a: {<<: {value: 1}}\n")), HasSubstr("parameters.a.<<: "));
}

TEST(Document, HasMessagesThatNameTheNextStep) {
  ExpectGolden("sweepfile/document", ExpectFaults({{"", "1:1: "},
                                                   {"[1, 2]", "1:1: "},
                                                   {"train.cc", "1:1: "},
                                                   {"name: a\nname: b\n", "2:1: name: "},
                                                   {"metric:\n\tname: loss\n", "2:"},
                                                   {"tags: [!foo a]\n", "tags"},
                                                   {"? [a, b]\n: 1\n", "1:"},
                                                   {"name: a\n---\nname: b\n", "sweep.yaml:"},
                                                   {"a: &a [*a]\n", "1:8: "}},
                                                  [](const std::string& text) { return text; }));
}

TEST(Document, ReportsManyFaultsUpToALimit) {
  std::string file;
  for (int i = 0; i < 20'000; ++i) file += "max_trialz" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(Parse(file).faults.size(), 100u);
}

}  // namespace
}  // namespace attune::sweepfile
