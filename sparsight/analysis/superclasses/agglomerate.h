// Clustering from the bottom up: every item is a cluster, and the cheapest pair is merged until few are left.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// cost(a, b) of merging the clusters a < b, named by their smallest item. It may change only by a merge of a or b.
using MergeCost = std::function<double(int64_t a, int64_t b)>;
// Cluster `kept` takes the items of `gone`; kept < gone.
using MergeClusters = std::function<void(int64_t kept, int64_t gone)>;

// [items] cluster of each item, numbered by their smallest items; 1 <= clusters <= items. Of equal costs the pair with
// the smallest (a, b) is merged. Takes about items^2 costs and as much memory.
std::vector<int64_t> agglomerate(int64_t items, int64_t clusters, const MergeCost& cost, const MergeClusters& merge);

// Ward 1963: merges the pair with the smallest n_a n_b / (n_a + n_b) |mu_a - mu_b|^2, where n are sizes and mu means of
// the points [K,E] float64.
std::vector<int64_t> ward(const at::Tensor& points, int64_t clusters);

// Merges the pair with the largest gain of modularity, 2 (e_ab - s_a s_b), where e are the sums of A between clusters
// over its volume and s the row sums of e. affinity: A [K,K] float64.
std::vector<int64_t> greedy_modularity(const at::Tensor& affinity, int64_t clusters);

// Merges the pair with the largest mean of A between their classes.
std::vector<int64_t> average_linkage(const at::Tensor& affinity, int64_t clusters);

}  // namespace sparsight
