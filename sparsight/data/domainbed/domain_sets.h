// The datasets of DomainBed as a list: how each is read, and what its protocol knows of it. A dataset that is added
// here needs no line elsewhere: runs, sweeps and hyper-parameters ask this list.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

struct DomainBedOptions;

struct DomainSet {
  std::string name;
  int64_t environments = 0;  // 0: as many as its folder has
  int64_t classes = 0;       // 0: as many as its folder has
  int64_t channels = 3;
  int64_t small_side = 0;        // height and width of images that DomainBed counts as small; 0: photographs
  int64_t eval_every = 300;      // updates between evaluations, as published
  std::string batch_range = {};  // of random search (dg/random_range.h); "": as of others
  bool resized_first = false;    // to the size of the model, before it is augmented
  // What DomainBed calls the dataset and its environments in tables; {}: as its folder names them.
  std::string title = {};
  std::vector<std::string> environment_titles = {};
  // Images of all environments; a domain is an environment. Raises Error for files that differ from the published ones.
  std::function<DataSetPtr(const DomainBedOptions& options, uint64_t seed)> make = {};
};

// Generated ones, "folder" and published_domains().
const std::vector<DomainSet>& domain_sets();
// Raises UsageError naming the nearest one.
const DomainSet& domain_set(const std::string& name);

}  // namespace sparsight
