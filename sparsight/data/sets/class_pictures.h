// Small labelled images by class, for datasets that combine images: CIFAR-10's, or generated ones as a synthetic
// substitute.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

// One split of a dataset, with its images listed by class in their original order.
class ClassPictures {
 public:
  ClassPictures() = default;
  explicit ClassPictures(DataSetPtr set);

  const DataInfo& info() const { return set_->info(); }
  int64_t size() const { return set_->size(); }
  int64_t count(int64_t label) const { return std::ssize(of_class_.at(static_cast<size_t>(label))); }
  Sample get(int64_t label, int64_t number) const;  // 0 <= number < count(label)

 private:
  DataSetPtr set_;
  std::vector<std::vector<int64_t>> of_class_;
};

struct PictureParts {
  ClassPictures train, test;
};

// source: "cifar10", with its files in `root`, or "glyphs", ten generated classes of 50,000 and 10,000 colour images of
// 32 x 32 pixels, a pure function of the seed.
PictureParts picture_parts(const std::string& source, const std::string& root, int64_t seed);

// [C,H,W] uint8, H and W even. Returns [C,H/2,W/2]: the mean of each 2 x 2 pixels, halves rounded up.
at::Tensor halved(const at::Tensor& image);

// The number of images of a split whose classes have at least `minimum` each: `requested`, or all for 0. Raises Error
// naming the split if there are fewer.
int64_t checked_count(int64_t requested, int64_t minimum, int64_t classes, const std::string& part);

}  // namespace sparsight
