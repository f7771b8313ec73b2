// Which expert takes which part of an object: keypoints of parts against the experts of the patches around them. After
// Li et al. 2023, "Sparse Mixture-of-Experts are Domain Generalizable Learners", section 5.4 and figure 3: a histogram
// of part by expert over the 9 patches nearest to each keypoint. Letters: moe/axes.md; P parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/analysis/class_information.h"
#include "sparsight/core/options.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

inline constexpr int64_t kPatchesOfKeypoint = 9;

// A keypoint in pixels of the model's input.
struct PlacedPart {
  int64_t part = 0;  // 0..P-1
  double x = 0, y = 0;
};

// Patches of an image of height x width pixels, row by row.
struct PixelGrid {
  int64_t rows = 0, columns = 0;
  int64_t height = 0, width = 0;
};

// The `count` patches (all, if there are fewer) whose centres are nearest to (x, y), nearest first; of equal distances
// the lower patch number. Near a border they are no square. Raises Error for a point outside of the image.
std::vector<int64_t> nearest_patches(double x, double y, const PixelGrid& grid, int64_t count = kPatchesOfKeypoint);

// Counts of one layer. The row after the parts is the background: patches of no part of the image. (The paper says
// "15 + 1" rows; this reading of the last one is ours.)
class PartExperts {
 public:
  PartExperts(std::string layer, int64_t parts, int64_t experts);

  // Image `image` of the routing, whose input has height x width pixels: the expert with the largest gate of each
  // patch. Patches that capacity left without expert do not count. Raises Error unless the routing has a grid of
  // patches and this layer's experts.
  void add(const Routing& routing, int64_t image, const std::vector<PlacedPart>& points, int64_t height, int64_t width);

  const std::vector<int64_t>& counts() const { return counts_; }  // [P+1,E] patches
  // I(part; expert) over keypoints, without the background; shuffled: with the parts permuted over the keypoints.
  ClassInformation information() const;
  // Entropy in bits of the parts of the keypoints.
  double part_entropy() const;

  // {"layer", "experts", "keypoints": [P], "counts": [P+1][E], "best_expert": [P+1], "entropy": [P+1] bits (null for a
  // row without patches), "information": as of a class, "of_part_entropy": information / part entropy (null for 0),
  // "pairs": [{"pair", "same"}]: whether "left <pair>" and "right <pair>" have the same best expert}
  Json json(const std::vector<std::string>& parts) const;

 private:
  std::string layer_;
  int64_t parts_, experts_;
  std::vector<int64_t> counts_, keypoints_;
  ImageExperts points_;  // a keypoint is an "image", its part the class
};

}  // namespace sparsight
