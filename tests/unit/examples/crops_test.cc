#include "examples/cifar10/crops.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace cifar10 {
namespace {

constexpr std::int64_t kPictures = 400;
constexpr std::int64_t kRows = 6;
constexpr std::int64_t kColumns = 7;

std::vector<std::int64_t> Samples() {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < kPictures; ++i) samples.push_back(i);
  return samples;
}

// All pixels of a picture differ, and none is black.
at::Tensor Pictures() {
  return (torch::arange(3 * kRows * kColumns) + 1)
      .to(torch::kByte)
      .view({1, 3, kRows, kColumns})
      .repeat({kPictures, 1, 1, 1});
}

TEST(Crops, AreWindowsOfThePictureAtAllPositions) {
  const at::Tensor pictures = Pictures();
  const at::Tensor crops = CropAndFlip(pictures, Samples(), /*seed=*/1, /*epoch=*/0);
  const at::Tensor bordered = torch::constant_pad_nd(pictures[0], {4, 4, 4, 4});
  std::set<std::tuple<int, int, bool>> found;
  for (std::int64_t i = 0; i < kPictures; ++i) {
    int windows = 0;
    for (int down = 0; down <= 8; ++down) {
      for (int right = 0; right <= 8; ++right) {
        const at::Tensor window =
            bordered.slice(1, down, down + kRows).slice(2, right, right + kColumns);
        for (const bool mirrored : {false, true}) {
          if (!crops[i].equal(mirrored ? window.flip(2) : window)) continue;
          found.emplace(down, right, mirrored);
          ++windows;
        }
      }
    }
    ASSERT_EQ(windows, 1) << "picture " << i;
  }
  EXPECT_GT(found.size(), 120u);  // of 162
}

TEST(Crops, DependOnlyOnSeedEpochAndSample) {
  const at::Tensor pictures = Pictures();
  const at::Tensor crops = CropAndFlip(pictures, Samples(), 1, 0);
  EXPECT_TRUE(crops.equal(CropAndFlip(pictures, Samples(), 1, 0)));
  EXPECT_TRUE(crops[7].equal(CropAndFlip(pictures.slice(0, 0, 1), {7}, 1, 0)[0]));
  EXPECT_FALSE(crops.equal(CropAndFlip(pictures, Samples(), 1, 1)));
  EXPECT_FALSE(crops.equal(CropAndFlip(pictures, Samples(), 2, 0)));
}

}  // namespace
}  // namespace cifar10
