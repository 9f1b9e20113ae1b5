#include "tests/support/every_fact.h"

#include <cstdint>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/log/fields.h"
#include "tests/support/toy_algorithms.h"

namespace attune::testing {
namespace {

// An archive that fills every field with a different value of its type.
class Filler {
 public:
  static constexpr bool kReads = true;

  // Each round uses different enumerators and different alternatives.
  explicit Filler(int round) : round_(round) {}

  template <class T>
  void operator()(const char*, T& value) {
    Fill(value);
  }
  template <class T>
  void Sparse(const char*, T& value) {
    Fill(value);
  }
  void Row(SweepId& sweep) { sweep = SweepId(1); }
  void Row(TrialId& trial) { trial = {SweepId(1), TrialNumber(2)}; }

 private:
  void Fill(bool& value) { value = round_ % 2 == 0; }
  template <class T>
  requires std::is_integral_v<T>
  void Fill(T& value) { value = static_cast<T>(++last_); }
  template <class T>
  requires std::is_enum_v<T>
  void Fill(T& value) {
    int known = 0;
    while (Name(static_cast<T>(known)) != "unknown") ++known;
    value = static_cast<T>(round_ % known);
  }
  void Fill(double& value) { value = ++last_ + 1.0 / 3.0; }
  void Fill(std::string& text) { text = "text \"" + std::to_string(++last_) + "\"\n"; }
  void Fill(Time& time) { time.us = ++last_; }
  void Fill(Value& value) { value = int64_t{++last_}; }
  void Fill(Config& config) { config = {{"z", ++last_ + 0.1}, {"a", std::string("sgd")}}; }
  void Fill(Metrics& metrics) { metrics = {{"loss", ++last_ + 0.7}, {"accuracy", -0.0}}; }
  void Fill(SweepSpec& spec) { spec = ToySpec(); }
  template <class Tag, class Rep>
  void Fill(Strong<Tag, Rep>& strong) {
    Fill(strong.value);
  }
  template <class T>
  void Fill(std::optional<T>& value) {
    Fill(value.emplace());
  }
  template <class T>
  void Fill(Boxed<T>& boxed) {
    Fill(*boxed);
  }
  template <class T>
  void Fill(std::vector<T>& items) {
    for (T& item : items = std::vector<T>(2)) Fill(item);
  }
  template <class T, class... Rest>
  void Fill(std::map<std::string, T, Rest...>& members) {
    for (const char* name : {"b", "a"}) Fill(members[name]);
  }
  template <class T>
  requires requires(Filler& archive, T& value) { Fields(archive, value); }
  void Fill(T& value) { Fields(*this, value); }

  int round_;
  int last_ = 0;
};

}  // namespace

std::vector<Fact> EveryFact() {
  constexpr int kRounds = 8;  // the size of the largest enumeration
  std::vector<Fact> facts;
  const auto add = [&]<class... T>(const std::variant<T...>*) {
    for (int round = 0; round < kRounds; ++round) {
      const auto one = [&](auto fact) {
        Filler filler(round);
        Fields(filler, fact);
        facts.push_back(std::move(fact));
      };
      (one(T{}), ...);
    }
  };
  add(static_cast<const AnyFact*>(nullptr));
  return facts;
}

std::string Bytes(const Fact& fact) {
  ArchiveWriter archive;
  archive(fact);
  return archive.Take();
}

}  // namespace attune::testing
