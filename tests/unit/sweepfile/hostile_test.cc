#include <time.h>

#include <fstream>
#include <map>

#include "sweepfile/document.h"
#include "tests/unit/sweepfile/harness.h"

// Texts below kMaxFileBytes that would cost gigabytes or minutes.
namespace attune::sweepfile {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecondsMax = 1;  // of CPU
constexpr int64_t kBytesMax = 64 << 20;

std::string Times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// item(0), item(1), … with commas between them.
template <class Item>
std::string List(int count, Item item) {
  std::string all;
  for (int i = 0; i < count; ++i) all += (i == 0 ? "" : ",") + std::string(item(i));
  return all;
}
std::string Numbered(const std::string& name, int i) { return name + std::to_string(i); }

int64_t MemoryBytes(const std::string& which) {
  std::ifstream status("/proc/self/status");
  std::string name;
  int64_t kib = 0;
  while (status >> name) {
    if (name == which) status >> kib;
  }
  return kib * 1024;
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Sanitizers cost time and memory, so the limits do not hold under them. GCC defines macros; Clang
// answers __has_feature.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsInstrumented = true;
#elif defined(__has_feature)
constexpr bool kIsInstrumented =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsInstrumented = false;
#endif

// Parses `text`, checks what this cost, and returns the result.
Parsed ParseHostile(const std::string& name, const std::string& text) {
  EXPECT_LE(text.size(), kMaxFileBytes) << name;
  std::ofstream("/proc/self/clear_refs") << "5";  // forgets the peak
  const int64_t bytes_before = MemoryBytes("VmRSS:");
  const double before = CpuSeconds();
  Parsed parsed = Parse(text);
  const double seconds = CpuSeconds() - before;
  const int64_t bytes = MemoryBytes("VmHWM:") - bytes_before;
  if (!kIsInstrumented) {
    EXPECT_LT(seconds, kSecondsMax) << name;
    EXPECT_LT(bytes, kBytesMax) << name;
  }
  EXPECT_LE(parsed.faults.size(), kMaxFaults) << name;
  return parsed;
}

const std::string kBeginning =
    "command: [/bin/true]\nmetric: {name: loss, mode: min}\nstop: {max_trials: 4}\n";

// p0 … as a map of parameters.
std::string Parameters(int count, const std::string& domain) {
  std::string text = "parameters:\n";
  for (int i = 0; i < count; ++i) text += "  p" + std::to_string(i) + ": " + domain + "\n";
  return text;
}

TEST(HostileText, CostsLittle) {
  const auto values = [](int i) { return Numbered("v", i); };
  const std::string thousand = "[" + List(1000, values) + "]";
  const std::string last = "[" + List(1000, [](int) { return "v999"; }) + "]";
  const std::string conditions = [&] {
    std::string text;
    for (int i = 0; i < 90; ++i)
      text += "  q" + std::to_string(i) + ": {min: 0, max: 9, when: {p0: " + last + "}}\n";
    return text;
  }();
  std::string hopeless;
  for (int i = 0; i < 50; ++i)
    hopeless +=
        "  q" + std::to_string(i) + ": {value: 1, when: {p0: [" + Times(1000, "1,") + "]}}\n";
  const std::map<std::string, std::string> texts{
      {"aliases of a long text",
       "a: &x " + std::string(400'000, 'A') + "\nb: [" + Times(2000, "*x,") + "]\n"},
      {"anchors around anchors", Times(31, "&a [") + Times(90'000, "1,") + Times(31, "]")},
      {"anchors around a long text",
       Times(31, "&a [") + std::string(1'000'000, 'x') + Times(31, "]")},
      {"duplicates of a late key",
       "{" + List(20'000, [](int i) { return Numbered("k", i) + ": 1"; }) + "," +
           Times(20'000, "k19999: 1,") + "}"},
      {"duplicates under long keys", Times(30, "{" + std::string(900, 'k') + ": ") + "{" +
                                         Times(9'000, "a: 1,") + "}" + Times(30, "}")},
      {"a key of a megabyte",
       "? " + std::string(1'000'000, 'k') + "\n: {" + Times(99, "a: 1,") + "}"},
      {"places in one line", "{" + List(49'000, [](int i) { return Numbered("é", i); }) + "}"},
      {"brackets", std::string(1'000'000, '[')},
      {"numbers", "[" + Times(500'000, "1,")},
      {"tags", "[" + List(45'000, [](int) { return "!t 1"; }) + "]"},
      {"long numbers",
       kBeginning + "parameters: {x: {min: " + std::string(500'000, '1') + ", max: 2}}\n"},
      {"many points of many parameters", kBeginning + Parameters(900, "{value: 1}") +
                                             "initial_points: [" + Times(90'000, "{},") + "]\n"},
      {"points that name no parameter",
       kBeginning + Parameters(1000, "{value: 1}") + "initial_points: [" +
           Times(90, "{" + List(400, [](int i) { return Numbered("zz", i) + ": 1"; }) + "},") +
           "]\n"},
      {"points that choose", kBeginning + "parameters: {a: {values: " + thousand +
                                 "}}\ninitial_points: [" + Times(32'000, "{a: v999},") + "]\n"},
      {"conditions with long lists",
       kBeginning + "parameters:\n  p0: {values: " + thousand + "}\n" + conditions},
      {"conditions that cannot hold",
       kBeginning + "parameters:\n  p0: {values: [" +
           List(20, [](int i) { return std::string(40'000, 'x') + Numbered("", i); }) + "]}\n" +
           hopeless},
      {"a grid of many parameters",
       kBeginning + Parameters(1000, "{min: 0, max: 9}") + "searcher: {name: grid}\n"},
      {"a grid of many conditions",
       kBeginning + "parameters:\n  o: {min: 1, max: 90}\n  p0: {values: " + thousand + "}\n" +
           conditions + "searcher: {name: grid}\n"},
      {"placeholders without an end", kBeginning.substr(kBeginning.find('\n') + 1) +
                                          Parameters(1, "{value: 1}") + "command: [a, '" +
                                          Times(500'000, "${") + "}']\n"},
      {"placeholders of no parameter", kBeginning.substr(kBeginning.find('\n') + 1) +
                                           Parameters(1000, "{value: 1}") + "command: [a, '" +
                                           Times(80'000, "${param.zz}") + "']\n"},
      {"large patterns", kBeginning + "parameters: {}\nfailure: {on_log: [" + List(32, [](int i) {
                           return "{pattern: '" + std::to_string(i) + Times(60, "\\pL{1,1000}") +
                                  "', action: fail}";
                         }) + "]}\n"}};
  for (const auto& [name, text] : texts) ParseHostile(name, text);
}

TEST(HostileText, FaultsBeyondALimitAreCounted) {
  std::string duplicates = "{a: 1";
  for (int i = 0; i < 300; ++i) duplicates += ",\na: 1";
  const Parsed parsed = Parse(duplicates + "}");
  ASSERT_EQ(parsed.faults.size(), kMaxFaults);
  EXPECT_EQ(parsed.faults.front().path, "a");
  EXPECT_EQ(parsed.faults.back().path, "");
  EXPECT_EQ(parsed.faults.back().pointer, "");

  std::string unknown = With("");
  for (int i = 0; i < 150; ++i) unknown += "zebra" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(Parse(unknown).faults.back().message, HasSubstr(" 51 "));
  EXPECT_EQ(Parse(unknown).faults.back().line, 104);
}

TEST(HostileText, AsManyFaultsAsAreListedAreListed) {
  std::string unknown = With("");
  for (size_t i = 0; i < kMaxFaults; ++i) unknown += "zebra" + std::to_string(i) + ": 1\n";
  const Parsed parsed = Parse(unknown);
  ASSERT_EQ(parsed.faults.size(), kMaxFaults);
  EXPECT_EQ(parsed.faults.back().path, "zebra99");
}

TEST(HostileText, FaultsOfTheSpaceAreCounted) {
  std::string text = WithParameters("  p: {values: [a]}\n");
  for (int i = 0; i < 200; ++i)
    text += "  q" + std::to_string(i) + ": {value: 1, when: {p: [b, c]}}\n";
  EXPECT_THAT(Parse(text).faults.back().message, HasSubstr(" 301 "));
}

TEST(HostileText, ASentenceIsCut) {
  const Parsed parsed = Parse(With("tags: [!" + std::string(500'000, 't') + " 1]\n"));
  ASSERT_EQ(parsed.faults.size(), 1u);
  EXPECT_EQ(parsed.faults.front().message.size(), kMaxSentenceBytes);
}

TEST(HostileText, TextOfAliasesIsLimited) {
  const auto aliases = [](int count) {
    return With("tags: [&x " + std::string(400'000, 'A') + Times(count, ", *x") + "]\n");
  };
  EXPECT_EQ(Spec(aliases(3)).tags.size(), 4u);
  EXPECT_THAT(FaultsOf(aliases(4)), HasSubstr("2097152 bytes"));
}

TEST(HostileText, PointsOfALargeSpaceAreLimited) {
  const auto points = [](int count) {
    return kBeginning + Parameters(1000, "{value: 1}") + "initial_points: [" + Times(count, "{},") +
           "]\n";
  };
  EXPECT_EQ(Spec(points(49)).initial_points.size(), 49u);
  EXPECT_THAT(FaultsOf(points(50)), HasSubstr("initial_points: has 50 points; at most 49 "));
}

}  // namespace
}  // namespace attune::sweepfile
