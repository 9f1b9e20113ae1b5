#include "download/url.h"

#include <gtest/gtest.h>

#include <string>

namespace attune::download {
namespace {

TEST(WithoutSecrets, RemovesPasswordsQueriesAndFragments) {
  EXPECT_EQ(WithoutSecrets("https://example.org/a/b.bin"), "https://example.org/a/b.bin");
  EXPECT_EQ(WithoutSecrets("https://ada:lovelace@example.org/b?token=secret#part"),
            "https://example.org/b");
  EXPECT_EQ(WithoutSecrets("https://ada:love@lace@example.org"), "https://example.org");
  EXPECT_EQ(WithoutSecrets("https://example.org/a@b"), "https://example.org/a@b");
  EXPECT_EQ(WithoutSecrets("https://example.org?user=ada@secret"), "https://example.org");
  EXPECT_EQ(WithoutSecrets("ada:lovelace@example.org/b"), "example.org/b");
}

TEST(FileName, IsTheLastSegmentOfThePath) {
  EXPECT_EQ(FileName("https://example.org/a/cifar-10.tar.gz"), "cifar-10.tar.gz");
  EXPECT_EQ(FileName("https://example.org/a.bin?name=b.bin#c.bin"), "a.bin");
  EXPECT_EQ(FileName("file:///data/train_1+2.npz"), "train_1+2.npz");
}

TEST(FileName, IsDataIfThePathHasNone) {
  for (const char* url : {"", "https://example.org", "https://example.org/", "https://a/b/?c=d/e",
                          "https://example.org/.", "https://example.org/a/.."})
    EXPECT_EQ(FileName(url), "data") << url;
}

TEST(FileName, StaysInItsFolder) {
  EXPECT_EQ(FileName("https://example.org/..%2fetc%2Fpasswd"), "_2fetc_2Fpasswd");
  EXPECT_EQ(FileName("https://example.org/.hidden"), "hidden");
  EXPECT_EQ(FileName("https://example.org/a b\nc\\d:e\xc3\xa9"), "a_b_c_d_e__");
}

TEST(FileName, KeepsTheEndOfALongName) {
  const std::string name(kFileNameBytesMax, 'a');
  EXPECT_EQ(FileName("https://example.org/" + name), name);
  EXPECT_EQ(FileName("https://example.org/b." + name), name);
  EXPECT_EQ(FileName("https://example.org/b" + name.substr(9) + ".tar.gz").size(),
            kFileNameBytesMax - 1);
}

}  // namespace
}  // namespace attune::download
