// The MNIST family: four idx files, plain or gzip, with their usual names (train-images-idx3-ubyte.gz ...), in `root`
// or in `root`/raw.
#pragma once

#include "sparsight/data/sets/splits.h"

namespace sparsight {

struct MnistOptions {
  std::string root;
  std::string variant = "mnist";
  SplitOptions splits;
  void declare(OptionSet& set);
};

DataSplits make_mnist(const MnistOptions& options, const DataContext& context);

}  // namespace sparsight
