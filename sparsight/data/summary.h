// What a dataset holds, counted, for people to read.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

struct PartSummary {
  std::string name;  // "train", "validation", "test"
  std::vector<int64_t> per_class, per_domain;
  int64_t images = 0;
  int64_t looked_at = 0;  // images whose size was looked at, spread evenly
  int64_t min_height = 0, max_height = 0, min_width = 0, max_width = 0;
};

struct DataSummary {
  DataInfo info;
  std::vector<PartSummary> parts;  // a part that is another one's synthetic substitute is left out
};

// Raises Error for an image that cannot be read.
DataSummary summarise(const DataSplits& splits);

// A few lines and a table of counts by class.
std::string summary_text(const DataSummary& summary);

// One line about a single file: an image, idx, npy or CIFAR file. Raises Error where it is damaged or of no known kind.
std::string describe_file(const std::string& path);

}  // namespace sparsight
