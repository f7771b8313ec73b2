// The list of algorithms that find super-classes.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

struct ClusteringMethod {
  std::string name, summary;
  bool is_spectral;  // whether it clusters the points of spectral_embedding()
  // affinity: [K,K] float64, not all 0; points: [K,E] float64, undefined unless is_spectral. Returns the cluster of
  // each class, 0 .. clusters-1, none empty, numbered by their smallest classes.
  std::vector<int64_t> (*cluster)(const at::Tensor& affinity, const at::Tensor& points, int64_t clusters);
};

// The default first.
const std::vector<ClusteringMethod>& clustering_methods();

// Raises UsageError for an unknown name.
const ClusteringMethod& clustering_method(const std::string& name);

}  // namespace sparsight
