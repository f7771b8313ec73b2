// Super-classes from a confusion matrix. Daxberger et al. 2023, "Mobile V-MoEs", section 3, clusters the confusion
// graph of a dense model; the paper names neither the algorithm nor its settings. Letters: moe/axes.md; K here is
// classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

struct ClusterOptions {
  int64_t superclasses = 10;                 // E
  std::string method = "spectral_ward";      // of clustering_methods()
  double tau = 0.1;                          // normalised_affinity(); above 0
  int64_t min_cluster_size = 1;              // classes that each super-class has at least
  std::vector<int64_t> class_to_group = {};  // [K] a given division, to be merged or split into E; {}: none
};

// Raises UsageError for options that do not fit this number of classes, and for an unknown method.
void check_cluster_options(const ClusterOptions& options, int64_t classes);

struct ClassClusters {
  std::vector<int64_t> class_to_superclass;  // [K] of 0 .. E-1, none empty, numbered by their smallest classes
  std::vector<double> eigenvalues = {};      // of the clustering into E by a spectral method, the largest first
  std::optional<double> eigengap = {};       // eigenvalue E minus eigenvalue E + 1
};

// counts: [K,K] real, rows are true classes. With a given division of G groups: E < G clusters the groups by the mean
// affinity between their classes, E > G splits the largest super-class in two until there are E, and E = G is the
// division itself. The result follows a permutation of the classes, unless eigenvalues or distances are equal, and no
// thread count changes it. Warns of an eigengap below kSmallEigengap. Raises UsageError for options that do not fit the
// number of classes, Error for a matrix without confusions.
//
// min_cluster_size: while a super-class is smaller, the smallest is merged into the one with the largest mean affinity,
// and the largest is split in two. Raises Error where that does not end.
ClassClusters cluster_classes(const at::Tensor& counts, const ClusterOptions& options);

}  // namespace sparsight
