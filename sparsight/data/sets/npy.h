// Arrays: images.npy and labels.npy in `root`, and for a test split test_images.npy and test_labels.npy. Images are
// [N,H,W], [N,C,H,W] or [N,H,W,C] with 1 or 3 channels: integers from 0 to 255, or floats from 0 to 1.
// class_names.txt may name the classes, one per line. Labels are class indices [N], or of multi-label data [N,K]: 1 for
// each class of an image, 0 elsewhere.
#pragma once

#include "sparsight/data/sets/splits.h"

namespace sparsight {

struct NpyOptions {
  std::string root;
  std::string layout = "auto";
  SplitOptions splits;
  void declare(OptionSet& set);
};

DataSplits make_npy(const NpyOptions& options, const DataContext& context);

}  // namespace sparsight
