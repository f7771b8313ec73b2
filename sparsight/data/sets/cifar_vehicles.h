// CIFAR-Vehicles of Chowdhury et al. 2023 ("Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for
// Convolutional Neural Networks", appendix A, figure 16): one quadrant of each image shows a vehicle of CIFAR-10, whose
// class is the label, the other three show animals.
#pragma once

#include <string>

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct CifarVehiclesOptions {
  std::string source = "cifar10";
  std::string root;
  int64_t train = 0;
  int64_t test = 0;
  int64_t seed = 0;
  void declare(OptionSet& set);
};

// Images of 32 x 32: four of 16 x 16; the attribute "cell" is the vehicle's quadrant, row by row. Labels cycle through
// airplane, automobile, ship, truck and use each class's images in order, so that the first N are balanced and larger
// sets contain smaller ones. Quadrant and animals of image i of a split are a pure function of (seed, split, i); the
// animals are from the same split of CIFAR-10. The test split is also the validation split, as in the paper.
// Raises Error naming missing files.
DataSplits make_cifar_vehicles(const CifarVehiclesOptions& options, const DataContext& context);

}  // namespace sparsight
