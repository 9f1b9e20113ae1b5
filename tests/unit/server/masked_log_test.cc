#include "server/masked_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace attune::server {
namespace {

constexpr uint32_t kReadBytesMax = 40;  // executors have a similar limit

class MaskedLogTest : public ::testing::Test {
 protected:
  Backend::LogSlice Read(int64_t offset, uint32_t limit) const {
    const auto slice = ReadMasked({offset, limit}, mask_, [this](const LogRange& range) {
      const int64_t size = std::ssize(log_);
      const int64_t from = range.offset >= 0 ? std::min(range.offset, size)
                                             : std::max<int64_t>(size + range.offset, 0);
      return Result(Backend::LogSlice{
          .data =
              log_.substr(static_cast<size_t>(from), std::min(range.limit_bytes, kReadBytesMax)),
          .offset = static_cast<uint64_t>(from),
          .file_bytes = static_cast<uint64_t>(size)});
    });
    return slice.value();
  }

  // The whole log, read in parts.
  std::string ReadAll(uint32_t limit) const {
    std::string text;
    while (text.size() < log_.size()) {
      const Backend::LogSlice slice = Read(std::ssize(text), limit);
      EXPECT_EQ(slice.offset, text.size());
      if (slice.data.empty()) break;
      text += slice.data;
    }
    return text;
  }

  const std::string log_ =
      "first line\nkey=s3cr3t-of-mine, again s3cr3t-of-mine\nand s3cr3t-of-mine\nlast s3cr3t";
  const std::string masked_ =
      "first line\nkey=**************, again **************\nand **************\nlast ******";
  const SecretMask mask_{{"s3cr3t-of-mine"}};
};

TEST_F(MaskedLogTest, SecretsAreHiddenWhateverTheSizeOfParts) {
  for (uint32_t limit = 1; limit < 100; ++limit) EXPECT_EQ(ReadAll(limit), masked_) << limit;
}

TEST_F(MaskedLogTest, PartsFromTheEndAreMasked) {
  const auto size = std::ssize(log_);
  for (int64_t offset = 1; offset <= size + 20; ++offset) {
    const Backend::LogSlice slice = Read(-offset, 5);
    const auto from = static_cast<size_t>(std::max<int64_t>(size - offset, 0));
    EXPECT_EQ(slice.offset, from);
    EXPECT_EQ(slice.data, masked_.substr(from, 5)) << offset;
  }
}

TEST_F(MaskedLogTest, ReadsNothingBeyondTheEnd) {
  EXPECT_EQ(Read(1000, 10).data, "");
  EXPECT_EQ(Read(1000, 10).offset, log_.size());
}

TEST_F(MaskedLogTest, WithoutSecretsNothingMoreIsRead) {
  int64_t asked = 0;
  const auto slice = ReadMasked({7, 10}, SecretMask(), [&](const LogRange& range) {
    asked = range.offset;
    EXPECT_EQ(range.limit_bytes, 10u);
    return Result(Backend::LogSlice{.data = "0123456789", .offset = 7, .file_bytes = 20});
  });
  EXPECT_EQ(asked, 7);
  EXPECT_EQ(slice->data, "0123456789");
}

// Bytes 20 to 60 are missing, and a read never crosses the gap.
Backend::LogSlice ReadWithGap(const std::string& log, const LogRange& range) {
  auto from = static_cast<size_t>(range.offset);
  if (from >= 20 && from < 60) from = 60;
  const size_t limit =
      from < 20 ? std::min<size_t>(range.limit_bytes, 20 - from) : range.limit_bytes;
  return {.data = log.substr(from, limit),
          .offset = from,
          .file_bytes = log.size(),
          .gap_begin = 20,
          .gap_end = 60};
}

TEST_F(MaskedLogTest, ReadsAcrossTheGapOfALogThatReachedItsLimit) {
  const std::string log = "the beginning s3cr3t" + std::string(40, '\0') + "of-mine the end of it";
  std::string text;
  for (int64_t at = 0; at < std::ssize(log);) {
    const auto slice = ReadMasked({at, 5}, mask_, [&](const LogRange& range) {
                         return Result(ReadWithGap(log, range));
                       }).value();
    ASSERT_FALSE(slice.data.empty()) << at;
    text += slice.data;
    at = static_cast<int64_t>(slice.offset) + std::ssize(slice.data);
  }
  EXPECT_EQ(text,
            "the beginning ******"
            "******* the end of it");
}

}  // namespace
}  // namespace attune::server
