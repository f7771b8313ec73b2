// CelebA in its official layout: `root` contains img_align_celeba/ (the aligned images), list_attr_celeba.txt and
// list_eval_partition.txt. Three tasks, as in Chowdhury et al. 2023 ("Patch-level Routing in Mixture-of-Experts is
// Provably Sample-efficient for Convolutional Neural Networks", section 5.2):
//   smiling          smiling or not; balanced classes
//   spurious_hair    the same, for images with either black or blond hair: in training a fraction `correlation` of the
//                    smiling faces has black hair and of the others blond hair; the test split has equally many of the
//                    four combinations. The hair is the domain, so that accuracy is reported for each combination
//   smiling_glasses  four classes: smiling or not, with or without eyeglasses; balanced
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct CelebaOptions {
  std::string root;
  std::string task = "smiling";
  int64_t train = 0;
  int64_t test = 0;
  double correlation = 0.95;
  std::string cells = "exact";
  int64_t block = 10000;
  void declare(OptionSet& set);
};

// The images of a split are the first of each kind in the order of the files, so that larger sets contain smaller ones.
// Raises Error with the available number if there are fewer than requested, unless `cells` has another rule: the
// paper's 25,000 images for spurious_hair need 11,875 of each frequent combination, more than there may be. Logs the
// number of images of each combination in a split of spurious_hair.
//   capped  as many images as possible while every combination keeps its fraction
//   sliced  as in the authors' code: combinations are stored one after the other in blocks of `block` images (smiling
//           and black hair, smiling and blond, then not smiling), and a slice that is longer than its block continues
//           into the next one, whose images are then used twice, and ends with the last block
DataSplits make_celeba(const CelebaOptions& options, const DataContext& context);

}  // namespace sparsight
