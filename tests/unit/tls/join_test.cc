#include "tls/join.h"

#include <string>

#include <gtest/gtest.h>

namespace attune::tls {
namespace {

const std::string kFingerprint(64, 'a');

TEST(Join, RoundTripsThroughOneWord) {
  for (const Join& join : {Join{"secret", ""}, Join{"secret", kFingerprint},
                           Join{"a.token:of/one's-own", kFingerprint}}) {
    EXPECT_EQ(ParseJoin(ToText(join)), join);
    EXPECT_EQ(ToText(join).find(' '), std::string::npos);
  }
  EXPECT_EQ(ToText({"secret", kFingerprint}), "sha256:" + kFingerprint + ":secret");
}

TEST(Join, RefusesAnIncompleteWord) {
  const std::string whole = ToText({"secret", kFingerprint});
  for (size_t size = 7; size <= 7 + 64 + 1; ++size) {
    EXPECT_EQ(ParseJoin(whole.substr(0, size)), std::nullopt) << size;
  }
  EXPECT_EQ(ParseJoin(""), std::nullopt);
  EXPECT_EQ(ParseJoin("two words"), std::nullopt);
  EXPECT_EQ(ParseJoin("line\n"), std::nullopt);
  EXPECT_EQ(ParseJoin("sha256:" + std::string(64, 'A') + ":secret"), std::nullopt);
}

}  // namespace
}  // namespace attune::tls
