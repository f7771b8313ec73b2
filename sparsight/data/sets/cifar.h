// CIFAR-10 and CIFAR-100, binary version: data_batch_1.bin to 5, test_batch.bin; train.bin, test.bin. In `root`, or in
// the subfolder that the official archive creates.
#pragma once

#include "sparsight/data/sets/splits.h"

namespace sparsight {

struct Cifar10Options {
  std::string root;
  SplitOptions splits;
  void declare(OptionSet& set);
};

struct Cifar100Options {
  std::string root;
  std::string labels = "fine";
  SplitOptions splits;
  void declare(OptionSet& set);
};

// Its super-classes are vehicles and animals (data/known_superclasses.h).
DataSplits make_cifar10(const Cifar10Options& options, const DataContext& context);

// Where the labels are the fine ones, the coarse ones are the super-classes.
DataSplits make_cifar100(const Cifar100Options& options, const DataContext& context);

}  // namespace sparsight
