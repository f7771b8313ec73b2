// A human-readable summary of a dataset.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

struct PartSummary {
  std::string name;  // "train", "validation", "test"
  std::vector<int64_t> per_class, per_domain;
  int64_t images = 0;
  int64_t looked_at = 0;  // number of evenly spaced images whose size was read
  int64_t min_height = 0, max_height = 0, min_width = 0, max_width = 0;
};

struct DataSummary {
  DataInfo info;
  std::vector<PartSummary> parts;  // without a split that is the same as another one
};

// Raises Error for an image that cannot be read.
DataSummary summarise(const DataSplits& splits);

// A few lines and a table of counts by class.
std::string summary_text(const DataSummary& summary);

// One line about a single file: an image, idx, npy or CIFAR file. Raises Error if it is damaged or of unknown type.
std::string describe_file(const std::string& path);

}  // namespace sparsight
