// The MNIST family: four idx files, plain or gzip, with their usual names (train-images-idx3-ubyte.gz ...), in `root`
// or in `root`/raw.
#pragma once

#include "sparsight/data/sets/array_set.h"
#include "sparsight/data/sets/splits.h"

namespace sparsight {

struct MnistOptions {
  std::string root;
  std::string variant = "mnist";
  SplitOptions splits;
  void declare(OptionSet& set);
};

// The path of an idx file in any of its spellings, "" if there is none: part "train" or "t10k", kind "images-idx3" or
// "labels-idx1".
std::string find_idx(const std::string& root, const std::string& part, const std::string& kind);

// The images [N,1,H,W] of the split "train" or "test" in `root`; find_: without images if there is no such split.
LabelledArray find_mnist_part(const std::string& root, const std::string& part);
LabelledArray read_mnist_part(const std::string& root, const std::string& part);

DataSplits make_mnist(const MnistOptions& options, const DataContext& context);

}  // namespace sparsight
