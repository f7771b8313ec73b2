#include "sparsight/analysis/superclasses/clustering_methods.h"

#include "sparsight/analysis/superclasses/agglomerate.h"
#include "sparsight/analysis/superclasses/farthest_first_kmeans.h"
#include "sparsight/core/nearest_name.h"

namespace sparsight {
namespace {

// The first of the classes with the largest row sum of A.
int64_t most_confused_class(const at::Tensor& affinity) {
  const int64_t n = affinity.size(0);
  const double* a = affinity.const_data_ptr<double>();
  int64_t best = 0;
  double most = -1;
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += *a++;
    if (sum > most) best = i, most = sum;
  }
  return best;
}

}  // namespace

const std::vector<ClusteringMethod>& clustering_methods() {
  using T = const at::Tensor&;
  static const std::vector<ClusteringMethod> methods = {
      {"spectral_ward", "eigenvectors of the confusion graph, merged by Ward's criterion", true,
       [](T, T points, int64_t clusters) { return ward(points, clusters); }},
      {"spectral_kmeans", "eigenvectors of the confusion graph, k-means from the farthest seeds", true,
       [](T affinity, T points, int64_t clusters) {
         return farthest_first_kmeans(points, clusters, most_confused_class(affinity));
       }},
      {"greedy_modularity", "merges what raises the modularity of the confusion graph most", false,
       [](T affinity, T, int64_t clusters) { return greedy_modularity(affinity, clusters); }},
      {"average_linkage", "merges the clusters with the most confusions between their classes on average", false,
       [](T affinity, T, int64_t clusters) { return average_linkage(affinity, clusters); }},
  };
  return methods;
}

const ClusteringMethod& clustering_method(const std::string& name) {
  return entry_named(name, clustering_methods(), "clustering method");
}

}  // namespace sparsight
