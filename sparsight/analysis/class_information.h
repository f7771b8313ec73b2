// Whether experts specialise by class, as one number: the mutual information of an image's class and the expert that
// its tokens go to. 0 where every class uses the experts alike; log2 of the classes where the expert gives the class
// away. A finite number of images has some by chance: the same images with shuffled classes say how much.
// Letters: moe/axes.md; n images, K classes.
#pragma once

#include <cstdint>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

// The classes of n images, and which share of the assignments of each went to each expert of a layer.
class ImageExperts {
 public:
  // counts: [E] assignments of the image; an image without any is left out.
  void add(int64_t label, const std::vector<int64_t>& counts);

  int64_t images() const { return static_cast<int64_t>(labels_.size()); }
  const std::vector<int64_t>& labels() const { return labels_; }  // [n]
  // sum over images of the shares, by label and expert: [K,E], labels[i] being the class of image i.
  std::vector<double> table(const std::vector<int64_t>& labels, int64_t classes, int64_t experts) const;

 private:
  struct Share {
    int32_t expert;
    float share;
  };
  std::vector<int64_t> labels_, ends_;  // [n]; ends_: into shares_
  std::vector<Share> shares_;
};

struct ClassInformation {
  double bits = 0;                // I(class; expert), every image having the same weight
  double shuffled = 0;            // its mean over random permutations of the classes over the images
  double shuffled_deviation = 0;  // its standard deviation over them
  double maximum = 0;             // log2 of the number of classes that have images, or of experts where they are fewer
  int64_t images = 0;
};

// joint: [K,E] non-negative weights. Returns the mutual information of row and column in bits; 0 for a sum of 0.
double mutual_information_bits(const std::vector<double>& joint, int64_t classes, int64_t experts);

// labels of `images` are 0..classes-1. The permutations are the same each time.
ClassInformation class_information(const ImageExperts& images, int64_t classes, int64_t experts);

// {"bits", "shuffled", "shuffled_deviation", "maximum", "images"}
Json to_json(const ClassInformation& information);

}  // namespace sparsight
