#include "examples/fashion_mnist/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace fashion_mnist {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::filesystem::path WriteFile(const std::string& bytes) {
  const std::filesystem::path path = testing::TempDir() + "file.idx";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path;
}

TEST(Idx, ReadsShapeAndBytes) {
  using std::string_literals::operator""s;
  const Idx idx = ReadIdx(WriteFile("\0\0\x08\x02\0\0\0\x02\0\0\0\x03"s + "abcdef"));
  EXPECT_THAT(idx.shape, ElementsAre(2, 3));
  EXPECT_THAT(idx.bytes, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
}

TEST(Idx, SaysWhereToGetAMissingFile) {
  EXPECT_THAT([] { ReadIdx("/nowhere/train-images-idx3-ubyte.gz"); },
              ThrowsMessage<std::runtime_error>(AllOf(HasSubstr("/nowhere/train-images"),
                                                      HasSubstr("dataset-fashion-mnist"),
                                                      HasSubstr("ATTUNE_DATA_DIR"))));
}

TEST(Idx, RefusesShortFilesAndOtherFormats) {
  using std::string_literals::operator""s;
  EXPECT_THAT([] { ReadIdx(WriteFile("\0\0\x08\x01\0\0\0\x09"s + "abc")); },
              ThrowsMessage<std::runtime_error>(HasSubstr("too early")));
  EXPECT_THAT([] { ReadIdx(WriteFile("a text file")); },
              ThrowsMessage<std::runtime_error>(HasSubstr("not an IDX file")));
  EXPECT_THAT([] { ReadIdx(WriteFile("\0\0\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff"s)); },
              ThrowsMessage<std::runtime_error>(HasSubstr("implausible size")));
}

TEST(Idx, ReadsTheFolderFromTheEnvironment) {
  setenv("ATTUNE_DATA_DIR", "/somewhere", 1);
  EXPECT_EQ(DataFolder(), "/somewhere");
  unsetenv("ATTUNE_DATA_DIR");
  EXPECT_EQ(DataFolder(), "/usr/share/datasets/fashion-mnist");
}

}  // namespace
}  // namespace fashion_mnist
