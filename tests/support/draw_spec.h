#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/log/sweep_keys.h"

namespace attune::testing {

// Draws the members of a specification from the rows of core/log/sweep_keys.h. Numbers lie in their
// ranges. Texts contain characters that are hard to write in YAML and JSON.
class MemberDraw {
 public:
  explicit MemberDraw(std::mt19937_64& random) : random_(random) {}

  int64_t Between(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(random_() % static_cast<uint64_t>(max - min + 1));
  }
  bool OneIn(int64_t count) { return Between(1, count) == 1; }

  template <HasKeys T>
  void Keys(T& owner) {
    ForEachKey<T>([&](const auto& row) { Draw(row.key, row.FieldIn(owner)); });
  }

  template <IntegerMember T>
  void Draw(const Key& key, T& member) {
    const auto min = static_cast<int64_t>(key.min.value_or(0));
    const auto max = static_cast<int64_t>(key.max.value_or(1e15));
    int64_t value = Between(min, std::min(max, min + 100));
    if (OneIn(8)) value = OneIn(2) ? min : max;
    if (OneIn(8)) value = Between(min, max);
    FromValue(value, member);
  }
  void Draw(const Key&, bool& member) { member = OneIn(2); }
  template <WordMember T>
  void Draw(const Key&, T& member) {
    const auto words = WordsOf<T>();
    FromValue(words[static_cast<size_t>(Between(0, std::ssize(words) - 1))], member);
  }
  void Draw(const Key& key, double& member) { member = Real(key); }
  void Draw(const Key& key, std::optional<double>& member) {
    member.reset();
    if (!OneIn(3)) member = Real(key);
  }
  void Draw(const Key& key, Seconds& member) {
    member = Seconds(OneIn(3) ? Real(key) : static_cast<double>(Between(1, 24) * 3600));
  }
  void Draw(const Key& key, std::string& member) {
    const bool metric = key.name.ends_with("metric") || key.name.ends_with("time_attr");
    member = metric ? MetricName() : Text();
  }
  void Draw(const Key&, std::vector<std::string>& member) {
    member.clear();
    for (int64_t left = Between(0, 3); left > 0; --left) member.push_back(Text());
  }
  void Draw(const Key&, std::vector<std::pair<std::string, std::string>>& member) {
    member.clear();
    for (int64_t left = Between(0, 3); left > 0; --left)
      member.emplace_back("NAME_" + std::to_string(left) + "é", Text());
  }
  void Draw(const Key&, std::vector<SweepId>& member) {
    member.clear();
    for (int64_t left = Between(0, 3); left > 0; --left)
      member.emplace_back(static_cast<uint64_t>(left * 1000 + Between(0, 99)));
  }
  void Draw(const Key&, Requirements& member) {
    member.clear();
    for (int64_t left = Between(0, 2); left > 0; --left) {
      for (int64_t value = Between(0, 2); value >= 0; --value)
        member["label" + std::to_string(left)].insert("no" + std::to_string(value));
    }
  }
  template <HasKeys T>
  void Draw(const Key&, std::optional<T>& member) {
    member.reset();
    if (!OneIn(3)) Keys(member.emplace());
  }
  template <HasKeys T>
  void Draw(const Key&, std::vector<T>& members) {
    members.clear();
    for (int64_t left = Between(0, 3); left > 0; --left) {
      T& member = members.emplace_back();
      if constexpr (IsEntry<T>()) EntryNameOf(member) = MetricNames()[static_cast<size_t>(left)];
      Keys(member);
    }
  }

  static const std::vector<std::string>& MetricNames() {
    static const std::vector<std::string> names{"loss", "accuracy", "no", "latency_ms"};
    return names;
  }

 private:
  const std::string& MetricName() { return MetricNames()[static_cast<size_t>(Between(0, 3))]; }

  double Real(const Key& key) {
    const double min = key.min.value_or(-1e6);
    const double max = std::min(key.max.value_or(1e6), 1e9);
    switch (Between(0, 3)) {
      case 0:
        return min;
      case 1:
        return static_cast<double>(Between(static_cast<int64_t>(min), static_cast<int64_t>(max)));
      default:
        return std::uniform_real_distribution<double>(min, max)(random_);
    }
  }
  std::string Text() {
    static const char* const kTexts[] = {"plain",   "a b", "yes",      "1e-3",       "0x1F",
                                         "null",    "~",   "é\"ü\\",   "- x",        "a: b # c",
                                         "{[*&!|>", "'",   "$${HOME}", "\U0001F680", " padded "};
    return kTexts[static_cast<size_t>(Between(0, std::ssize(kTexts) - 1))];
  }

  std::mt19937_64& random_;
};

}  // namespace attune::testing
