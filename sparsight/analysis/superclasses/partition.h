// Divisions of classes into super-classes, and measures of how well one fits a confusion matrix. Letters: moe/axes.md;
// K here is classes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// Numbers the clusters of a division by their smallest items: the cluster of item 0 is 0, and so on.
std::vector<int64_t> renumbered(const std::vector<int64_t>& item_to_cluster);

// The items of each cluster, ascending. item_to_cluster: numbers 0 .. E-1.
std::vector<std::vector<int64_t>> cluster_members(const std::vector<int64_t>& item_to_cluster);

// Sum over clusters of e_cc - s_c^2: e are the sums of the affinity A [K,K] within clusters over its volume, s the row
// sums over it. Newman and Girvan 2004, "Finding and evaluating community structure in networks".
double modularity(const at::Tensor& affinity, const std::vector<int64_t>& item_to_cluster);

// Sum over clusters of the affinity that leaves the cluster over the row sums of its classes (0 where these are 0). Shi
// and Malik 2000, "Normalized cuts and image segmentation".
double normalised_cut(const at::Tensor& affinity, const std::vector<int64_t>& item_to_cluster);

// How alike two divisions of the same items are: 1 for the same up to numbers, 0 on average for random ones. Hubert and
// Arabie 1985, "Comparing partitions", the adjusted Rand index. Raises UsageError for different numbers of items.
double adjusted_rand_index(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

// A class that is taken for another: `count` of the confusion matrix.
struct ClassConfusion {
  int64_t truth = 0, predicted = 0;
  double count = 0;
};

struct ClusterMeasures {
  std::vector<int64_t> classes;              // ascending
  std::optional<double> inside_share;        // of the confusions of its classes, those with each other; null for none
  std::vector<ClassConfusion> largest = {};  // at most 3 within the cluster, the largest first
};

struct PartitionMeasures {
  std::vector<ClusterMeasures> clusters;
  double modularity = 0, normalised_cut = 0;
  double inside_share = 0;  // of all confusions, those within clusters
};

// counts: [K,K] as confusion_affinity() takes them.
PartitionMeasures measure_partition(const at::Tensor& counts, const std::vector<int64_t>& item_to_cluster);

}  // namespace sparsight
