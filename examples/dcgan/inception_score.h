#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace dcgan {

// The inception score of generated images (Salimans et al., Improved Techniques for Training GANs,
// NIPS 2016, §4): exp E_x KL(p(y|x) ‖ p(y)), with a classifier's probabilities p(y|x). It is 1 if
// the classifier sees no difference between the images. It reaches the number of classes if each
// image certainly belongs to one class and all classes are equally frequent.
class InceptionScore {
 public:
  // `classes`: number of classes of the classifier.
  explicit InceptionScore(std::size_t classes) : sums_(classes + 2) {}

  // Adds an image. `probabilities`: its probability for each class; the sum is 1.
  template <typename Probabilities>
  void Add(const Probabilities& probabilities) {
    for (std::size_t y = 0; y < ClassCount(); ++y) {
      const double p = probabilities[y];
      sums_[y] += p;
      if (p > 0) sums_[ClassCount()] += p * std::log(p);
    }
    sums_[ClassCount() + 1] += 1;
  }

  // The sums of this worker's images. Add them up over all workers to get the score of all images.
  std::vector<double>& sums() { return sums_; }

  // REQUIRES: at least one image.
  double Value() const {
    const double images = sums_[ClassCount() + 1];
    double divergence = sums_[ClassCount()] / images;
    for (std::size_t y = 0; y < ClassCount(); ++y) {
      const double p = sums_[y] / images;
      if (p > 0) divergence -= p * std::log(p);
    }
    return std::exp(divergence);
  }

 private:
  std::size_t ClassCount() const { return sums_.size() - 2; }

  // p(y|x) for each class y; then p(y|x) log p(y|x); then the number of images.
  std::vector<double> sums_;
};

}  // namespace dcgan
