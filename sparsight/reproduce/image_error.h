// The uncertainty of shares of test images, such as accuracies: other images of the same kind would give other shares.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// A share of images in percent, or the difference of two shares of the same images.
struct ImageShare {
  double percent = 0;
  double images = 0;               // 0: it is no share of images, or their number is not known
  bool own = false;                // of this seed alone
  std::vector<double> outcomes{};  // of each image, 0 to 1, whose mean is the share; {}: not known
};

// One term of a sum: the share, by which the sum changes `weight` times as much.
struct WeightedShare {
  double weight = 1;
  ImageShare share;
};

// "101" -> {1, 0, 1}
std::vector<double> to_outcomes(const std::string& bits);

// Standard deviation, over samples of images, of the weighted sum of shares; in percent. If the outcomes of all are
// known and equally many, those of the same place are taken to be the same image (paired errors). Otherwise each share
// has the variance of a binomial, and those of equal sign are taken to err together, those of different sign
// independently, which is the most that shares of the same images can: none errs against another there. So that shares
// of 0 and 100 % have an error too, two images whose outcomes are coin tosses are added (Agresti and Caffo 2000;
// paired: Agresti and Min 2005).
double image_deviation(const std::vector<WeightedShare>& terms);

// That of one share minus another.
double image_deviation(const ImageShare& share, const ImageShare& other);

}  // namespace sparsight
