#pragma once

#include <torch/data/datasets/base.h>
#include <torch/data/example.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "examples/fashion_mnist/dataset.h"

namespace fashion_mnist {

// Images begin … end - 1 of Dataset::Load(part), for data loaders. In a batch, `data` has the
// images (n, 1, 28, 28) and `target` has the labels (n). Copies share memory.
class Images : public torch::data::datasets::BatchDataset<Images, torch::data::Example<>> {
 public:
  Images(const std::string& part, std::int64_t begin, std::int64_t end)
      : images_(Dataset::Load(part).Range(begin, end)) {}

  torch::data::Example<> get_batch(c10::ArrayRef<std::size_t> samples) override {
    Batch batch =
        images_.Take(std::vector<std::int64_t>(samples.begin(), samples.end()), torch::kCPU);
    return {std::move(batch.images), std::move(batch.labels)};
  }
  std::optional<std::size_t> size() const override { return images_.size(); }

 private:
  Dataset images_;
};

}  // namespace fashion_mnist
