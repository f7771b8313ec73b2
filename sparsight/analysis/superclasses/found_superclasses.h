// Super-classes with all that says where they are from and how good they are.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/superclasses/cluster_classes.h"
#include "sparsight/analysis/superclasses/partition.h"
#include "sparsight/core/options.h"

namespace sparsight {

struct FoundSuperclasses {
  at::Tensor counts;  // [K,K]
  ClusterOptions options;
  ClassClusters clusters;
  PartitionMeasures measures;
  std::vector<std::string> classes;  // K names
  Json source;                       // what was counted: {"run", "confusion", "split", "images", ...}
};

// classes: K names; {}: they are numbered.
FoundSuperclasses find_superclasses(const at::Tensor& counts, const ClusterOptions& options,
                                    std::vector<std::string> classes, Json source);

// The report: {"format": "sparsight-superclasses", "version", "superclasses", "method", "tau", "min_cluster_size",
// "given_groups", "source", "modularity", "normalised_cut", "inside_share", "eigenvalues", "eigengap",
// "published_rows", "clusters": [{"superclass", "size", "classes", "inside_share", "largest_confusions"}]};
// docs/whole_images.md.
Json superclass_json(const FoundSuperclasses& found);

}  // namespace sparsight
