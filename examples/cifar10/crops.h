#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace cifar10 {

inline constexpr std::int64_t kBorder = 4;  // pixels of black border around an image

// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
inline std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Crops each picture at a random position, after adding a black border, and mirrors half of them.
// `pictures`: (n, channels, rows, columns); `samples`: their numbers in the dataset. The random
// draws depend only on seed, epoch and sample number, so they are the same with any number of
// workers and threads, and after a resume.
inline at::Tensor CropAndFlip(const at::Tensor& pictures, const std::vector<std::int64_t>& samples,
                              std::uint64_t seed, std::int64_t epoch) {
  const auto n = static_cast<std::int64_t>(samples.size());
  std::vector<std::int64_t> down(n), right(n), mirrored(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t drawn = Mix(Mix(Mix(seed + 1) + epoch) + samples[i]);
    down[i] = static_cast<std::int64_t>((drawn & 0xffff) % (2 * kBorder + 1));
    right[i] = static_cast<std::int64_t>((drawn >> 16 & 0xffff) % (2 * kBorder + 1));
    mirrored[i] = static_cast<std::int64_t>(drawn >> 32 & 1);
  }
  const auto column = [](const std::vector<std::int64_t>& values) {
    return torch::tensor(values).unsqueeze(1);
  };
  const std::int64_t height = pictures.size(2);
  const std::int64_t width = pictures.size(3);
  const at::Tensor across = torch::arange(width);
  const at::Tensor rows = column(down) + torch::arange(height);  // [n, height]
  const at::Tensor columns =                                     // [n, width]
      column(right) + torch::where(column(mirrored) == 1, width - 1 - across, across);

  using torch::indexing::Slice;
  const auto device = pictures.device();
  const at::Tensor bordered =
      torch::constant_pad_nd(pictures, {kBorder, kBorder, kBorder, kBorder});
  return bordered
      .index({torch::arange(n, device).view({n, 1, 1}), Slice(), rows.unsqueeze(2).to(device),
              columns.unsqueeze(1).to(device)})
      .permute({0, 3, 1, 2})
      .contiguous();
}

}  // namespace cifar10
