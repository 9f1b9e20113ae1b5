#include "sweepfile/document.h"

#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Document, SyntaxErrorHasLineAndColumn) {
  EXPECT_THAT(FaultsOf("command: [train\nmetric: {name: loss}\n"),
              StartsWith("sweep.yaml:2:7: not YAML: "));
  EXPECT_THAT(FaultsOf("a: 1\n b: 2\n"), StartsWith("sweep.yaml:2:"));
  EXPECT_THAT(FaultsOf("a: 'x"), HasSubstr("not YAML: "));
}

TEST(Document, TabsThatIndentAreNamed) {
  constexpr const char* kTabs = "YAML is indented by spaces, never by tabs";
  for (const char* text : {"metric:\n\tname: loss\n", "metric:\n  name: loss\n\tmode: min\n",
                           "parameters:\n  lr:\n  \tmin: 1\n", "command:\n\t- train\n"}) {
    EXPECT_THAT(FaultsOf(text), HasSubstr(kTabs)) << text;
  }
  for (const char* text : {"a: 1\n b:\t2\n", "{\n\t\"a\": 1,\n\t\"b\" 2: 3\n}", "a: 'x"}) {
    EXPECT_THAT(FaultsOf(text), Not(HasSubstr(kTabs))) << text;
  }
}

TEST(Document, EmptyFilesSayWhatASweepNeeds) {
  for (const char* text : {"", "\n\n", "# nothing\n", "---\n", "~", "\xEF\xBB\xBF"}) {
    EXPECT_EQ(FaultsOf(text),
              "sweep.yaml:1:1: the file is empty; a sweep needs metric and parameters, and command "
              "where Attune is to run a program\n");
  }
}

TEST(Document, OnlyAMapIsASweep) {
  EXPECT_THAT(FaultsOf("[1, 2]"), HasSubstr("expected a map of keys"));
  EXPECT_THAT(FaultsOf("train.cc"), HasSubstr("found the text \"train.cc\""));
}

TEST(Document, DuplicateKeysAreFaults) {
  EXPECT_EQ(FaultsOf(With("name: a\nname: b\n")),
            "sweep.yaml:6:1: name: this key is already there, in line 5; remove one of them\n");
  EXPECT_THAT(FaultsOf(WithParameters("  lr: {value: 1}\n  lr: {value: 2}\n")),
              HasSubstr("sweep.yaml:6:3: parameters.lr: this key is already there, in line 5"));
}

TEST(Document, ColumnsCountCharacters) {
  EXPECT_THAT(FaultsOf(With("tags: [\"äöü\", [x]]\n")), StartsWith("sweep.yaml:5:15: tags[1]: "));
}

TEST(Document, BytesThatAreNotUtf8AreTold) {
  EXPECT_EQ(FaultsOf("name: a\ntags: [\xFF]\n"),
            "sweep.yaml:2:8: not UTF-8; save the file as UTF-8\n");
  for (const char* text :
       {"a: \xC0\x80", "a: \xED\xA0\x80", "a: \xF5\x80\x80\x80", "a: \xE2\x82"}) {
    EXPECT_THAT(FaultsOf(text), HasSubstr("not UTF-8"));
  }
  EXPECT_THAT(FaultsOf(std::string_view("a: \0b", 5)), HasSubstr("a control character (code 0)"));
}

TEST(Document, NulInAnEscapeIsRefused) {
  EXPECT_THAT(FaultsOf(With("env: {A: \"x\\0y\"}\n")), HasSubstr("holds a NUL character"));
}

TEST(Document, SizeIsLimited) {
  const std::string file = With("");
  const std::string padding(kMaxFileBytes - file.size() - 1, '#');
  Spec(file + padding + "\n");
  EXPECT_THAT(FaultsOf(file + padding + "#\n"), HasSubstr("at most 1048576 are read"));
}

TEST(Document, DepthIsLimited) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_THAT(FaultsOf(nested(kMaxDepth)), HasSubstr("expected a map of keys"));
  EXPECT_THAT(FaultsOf(nested(kMaxDepth + 1)), HasSubstr("nested more than 32 deep"));
  EXPECT_THAT(FaultsOf(nested(kMaxFileBytes / 2)), HasSubstr("at most 100000 values"));
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
  EXPECT_THAT(FaultsOf(bomb), HasSubstr("more than 100000 values"));
  EXPECT_THAT(FaultsOf("a: &a [*a]\n"), HasSubstr("an alias inside what it stands for"));
  EXPECT_THAT(FaultsOf("a: *b\n"), HasSubstr("not YAML"));
}

TEST(Document, AliasesDoNotNestDeeperThanTheLimit) {
  std::string file = "a0: &a0 [x]\n";
  for (size_t i = 1; i < kMaxDepth; ++i) {
    const std::string n = std::to_string(i);
    file += "a" + n + ": &a" + n + " [*a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_THAT(FaultsOf(file), HasSubstr("nested more than 32 deep"));
}

TEST(Document, TagsKeysAndSecondDocumentsAreRefused) {
  EXPECT_THAT(FaultsOf(With("max_concurrent_trials: !!int 3\n")), HasSubstr("mean nothing here"));
  EXPECT_EQ(Spec(WithParameters("  a: {value: !!str 3}\n")).space.Find("a")->domain,
            Domain(ConstantDomain{std::string("3")}));
  EXPECT_THAT(FaultsOf(With("? [a, b]\n: 1\n")), HasSubstr("a key must be text"));
  EXPECT_THAT(FaultsOf(With("---\nname: b\n")), HasSubstr("a second document"));
  EXPECT_THAT(FaultsOf(WithParameters("  a: {<<: {value: 1}}\n")), HasSubstr("<<: unknown key"));
}

TEST(Document, ManyFaultsAreToldUpToALimit) {
  std::string file;
  for (int i = 0; i < 20'000; ++i) file += "max_trialz" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(Parse(file).faults.size(), 100u);
}

}  // namespace
}  // namespace attune::sweepfile
