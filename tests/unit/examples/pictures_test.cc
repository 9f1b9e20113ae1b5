#include "examples/cifar10/pictures.h"

#include <attune/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "system/sha256.h"

namespace cifar10 {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kPixels = 3 * 32 * 32;

std::string Record(char label, char pixel) {
  return std::string(1, label) + std::string(kPixels, pixel);
}

void WriteFile(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Cifar10 : public testing::Test {
 protected:
  Cifar10() {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "cifar-10-batches-bin");
    for (int i = 1; i <= 5; ++i) WriteFile(Batch(i), Record(i, 10 * i) + Record(0, 1));
  }
  ~Cifar10() override { fs::remove_all(folder_); }

  fs::path Batch(int number) const {
    return folder_ / "cifar-10-batches-bin" / ("data_batch_" + std::to_string(number) + ".bin");
  }
  Pictures Read() const { return ReadCifar10(folder_ / "cifar-10-batches-bin"); }

  const fs::path folder_ = fs::path(testing::TempDir()) / "cifar10_test";
};

TEST_F(Cifar10, ReadsLabelsAndPixelsOfAllFilesInOrder) {
  const Pictures pictures = Read();
  EXPECT_THAT(pictures.labels, ElementsAre(1, 0, 2, 0, 3, 0, 4, 0, 5, 0));
  ASSERT_EQ(pictures.pixels.size(), 10 * kPixels);
  EXPECT_EQ(pictures.pixels[0], 10);
  EXPECT_EQ(pictures.pixels[kPixels], 1);
  EXPECT_EQ(pictures.pixels[9 * kPixels - 1], 50);
}

TEST_F(Cifar10, NamesAFileWithAWrongSizeOrLabel) {
  WriteFile(Batch(3), Record(0, 0) + "more");
  EXPECT_THAT([&] { Read(); },
              ThrowsMessage<std::runtime_error>(AllOf(HasSubstr("data_batch_3.bin"),
                                                      HasSubstr("3077 bytes"), HasSubstr("3073"))));
  WriteFile(Batch(3), Record(10, 0));
  EXPECT_THAT([&] { Read(); }, ThrowsMessage<std::runtime_error>(
                                   AllOf(HasSubstr("data_batch_3.bin"), HasSubstr("label of 10"))));
  fs::remove(Batch(3));
  EXPECT_THAT([&] { Read(); }, ThrowsMessage<std::runtime_error>(HasSubstr("data_batch_3.bin")));
}

class Cifar10Archive : public Cifar10 {
 protected:
  Cifar10Archive() {
    const std::string pack =
        "tar -czf '" + archive_.string() + "' -C '" + folder_.string() + "' cifar-10-batches-bin";
    if (std::system(pack.c_str()) != 0) ADD_FAILURE() << pack;
    fs::remove_all(folder_ / "cifar-10-batches-bin");
  }
  ~Cifar10Archive() override { fs::remove(archive_); }

  void DownloadArchive() {
    const std::string bytes = ReadFile(archive_);
    DownloadCifar10(folder_, "file://" + archive_.string(), attune::Sha256::HexOf(bytes));
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    return names;
  }

  const fs::path archive_ = fs::path(testing::TempDir()) / "cifar10_test.tar.gz";
};

TEST_F(Cifar10Archive, IsDownloadedOnceAndUnpacked) {
  DownloadArchive();
  EXPECT_EQ(Read().labels.size(), 10u);
  EXPECT_THAT(Names(), testing::IsSupersetOf({"cifar-10-batches-bin", "cifar-10.lock"}));
  EXPECT_THAT(Names(), testing::Not(testing::Contains(HasSubstr("partial"))));
  EXPECT_FALSE(fs::exists(folder_ / "cifar-10-binary.tar.gz"));
  DownloadCifar10(folder_, "file:///nowhere", std::string(64, '0'));
}

TEST_F(Cifar10Archive, RemovesWhatAKilledProcessUnpacked) {
  fs::create_directories(folder_ / "cifar-10.partial/cifar-10-batches-bin/half");
  DownloadArchive();
  EXPECT_FALSE(fs::exists(folder_ / "cifar-10-batches-bin/half"));
  EXPECT_EQ(Read().labels.size(), 10u);
}

TEST_F(Cifar10Archive, IsNotUnpackedWithAnotherHash) {
  EXPECT_THROW(DownloadCifar10(folder_, "file://" + archive_.string(), std::string(64, '0')),
               attune::sdk::Error);
  EXPECT_FALSE(fs::exists(folder_ / "cifar-10-batches-bin"));
}

TEST_F(Cifar10Archive, RefusesAFileThatIsNoArchive) {
  WriteFile(archive_, "a text file");
  EXPECT_THAT([&] { DownloadArchive(); }, ThrowsMessage<std::runtime_error>(HasSubstr(": tar ")));
  EXPECT_FALSE(fs::exists(folder_ / "cifar-10-batches-bin"));
}

}  // namespace
}  // namespace cifar10
