// A dataset in memory, as one array.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

// Raises Error naming `file` if a label is not below `classes`.
void check_labels(const std::vector<int64_t>& labels, int64_t classes, const std::string& file);

struct LabelledArray {
  at::Tensor images;            // [N,C,H,W] uint8
  std::vector<int64_t> labels;  // [N]
  std::string part;             // "train": the ids are train/0, train/1, ...
  std::string file;             // where the labels come from, for errors
  at::Tensor label_sets = {};   // [N,K] bool of multi-label data: the classes of each image, of which `labels` are the
                                // first; else undefined
};

class ArraySet : public DataSet {
 public:
  // `info`: its sizes are taken from the images, multi_label from `array`. Raises Error for labels out of range and if
  // there are not as many labels as images.
  ArraySet(DataInfo info, LabelledArray array);

  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return static_cast<int64_t>(array_.labels.size()); }
  Sample get(int64_t index) const override;  // the image is a view: do not write to it
  int64_t label(int64_t index) const override { return array_.labels.at(index); }
  std::vector<int64_t> labels(int64_t index) const override;

 private:
  DataInfo info_;
  LabelledArray array_;
};

// "0", "1", ... for classes without names.
std::vector<std::string> number_names(int64_t count);

// The lines of a text file, without empty ones; empty if there is no such file.
std::vector<std::string> read_names(const std::string& path);

}  // namespace sparsight
