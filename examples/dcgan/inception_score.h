#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace dcgan {

// The inception score of generated images (Salimans et al., Improved Techniques for Training GANs,
// NIPS 2016, §4): exp E_x KL(p(y|x) ‖ p(y)), by a classifier's probabilities p(y|x). It is 1 where
// all images look alike to the classifier, or like nothing, and grows to the number of classes,
// where each image is certainly of one, and all are equally frequent.
class InceptionScore {
 public:
  // Room for `classes` of probabilities.
  explicit InceptionScore(std::size_t classes) : sums_(classes + 2) {}

  // The probabilities of one image's classes, which come to 1.
  template <typename Probabilities>
  void Add(const Probabilities& of_image) {
    for (std::size_t y = 0; y < Classes(); ++y) {
      const double p = of_image[y];
      sums_[y] += p;
      if (p > 0) sums_[Classes()] += p * std::log(p);
    }
    sums_[Classes() + 1] += 1;
  }

  // Of several workers' images: these, summed over workers.
  std::vector<double>& sums() { return sums_; }

  // REQUIRES: at least one image.
  double Value() const {
    const double images = sums_[Classes() + 1];
    double divergence = sums_[Classes()] / images;
    for (std::size_t y = 0; y < Classes(); ++y) {
      const double p = sums_[y] / images;
      if (p > 0) divergence -= p * std::log(p);
    }
    return std::exp(divergence);
  }

 private:
  std::size_t Classes() const { return sums_.size() - 2; }

  std::vector<double> sums_;  // of p(y|x) by class; of p(y|x) log p(y|x); of images
};

}  // namespace dcgan
