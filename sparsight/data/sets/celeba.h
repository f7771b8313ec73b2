// CelebA in its official layout: `root` holds img_align_celeba/ (the aligned images), list_attr_celeba.txt and
// list_eval_partition.txt. Three tasks, as in Chowdhury et al. 2023 ("Patch-level Routing in Mixture-of-Experts is
// Provably Sample-efficient for Convolutional Neural Networks", section 5.2):
//   smiling          smiling or not; balanced classes
//   spurious_hair    the same, of images with black or else blond hair: in training the share `correlation` of smiling
//                    faces has black hair and of the others blond hair; tested on the four combinations alike. The hair
//                    is the domain, so that accuracy is told for each combination
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

// The images of a part are the first of each kind in the order of the files, so that larger sets contain smaller ones.
// Raises Error where there are fewer than asked for, saying how many there are, unless `cells` says what else to do:
// the paper's 25,000 images for spurious_hair need 11,875 of each frequent combination, more than there may be. Logs
// how many images of each combination a part of spurious_hair has.
//   capped  as many images as every combination has in its share
//   sliced  what the authors' code does: combinations stand one after the other in blocks of `block` images (smiling
//           and black hair, smiling and blond, then not smiling), and a slice that is longer than its block goes on
//           into the next one, whose images it then has twice, and ends with the last block
DataSplits make_celeba(const CelebaOptions& options, const DataContext& context);

}  // namespace sparsight
