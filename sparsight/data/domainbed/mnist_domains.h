// The two generated datasets of DomainBed, of the 70,000 images of MNIST in one random order. Letters: moe/axes.md.
#pragma once

#include <string>

#include "sparsight/data/data_set.h"

namespace sparsight {

// Image i of that order is in environment i mod 6 (of 3 in colored_mnist). root: the folder of MNIST's idx files; seed:
// of torch's generator, from which order, labels and colours are drawn as DomainBed draws them after
// torch.manual_seed(seed), so that the images are its images.
//
// rotated_mnist (Ghifary et al. 2015): turned by 0, 15, ... 75 degrees with bilinear interpolation; [1,28,28].
DataSetPtr rotated_mnist(const std::string& root, uint64_t seed);
// colored_mnist (Arjovsky et al. 2019): two classes, digits below 5 and the others, a quarter of the labels flipped. An
// image is in one of two channels, its colour: that of its label, flipped with a probability of 0.1, 0.2, and 0.9;
// [2,28,28].
DataSetPtr colored_mnist(const std::string& root, uint64_t seed);

}  // namespace sparsight
