// The confusion graph: classes that are often taken for each other are close. Daxberger et al. 2023, "Mobile V-MoEs",
// section 3, clusters such a graph, but gives neither its weights nor the algorithm. Letters: moe/axes.md; K here is
// classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

inline constexpr int64_t kMaxClusteredClasses = 5000;  // the eigenvectors of a dense [K,K] matrix take minutes there

// Raises Error unless `counts` is a square matrix of 2 to kMaxClusteredClasses finite numbers from 0; `name` is where
// it is from.
void check_confusion(const at::Tensor& counts, const std::string& name);

// [K,K] float64: A = (P + P^T) / 2 without its diagonal, where P is `counts` (real, [K,K], rows are true classes) with
// each row divided by max(1, its sum). Raises Error if all of A is 0, that is if no class is taken for another.
at::Tensor confusion_affinity(const at::Tensor& counts);

// The sum of all entries.
double volume(const at::Tensor& affinity);

// [K,K] float64: S = D^-1/2 A' D^-1/2, where A' = A + tau vol(A) / K^2 on all entries, diagonal included, and D are its
// row sums. tau > 0 keeps classes attached that are never confused. vol(A) > 0.
at::Tensor normalised_affinity(const at::Tensor& affinity, double tau);

// [G,G] float64: the affinity of groups of classes: the mean of A over the pairs of classes of two groups, 0 on the
// diagonal. class_to_group: [K] of 0 .. G-1, each used.
at::Tensor group_affinity(const at::Tensor& affinity, const std::vector<int64_t>& class_to_group);

// [n,n]: the rows and columns of `members`.
at::Tensor affinity_among(const at::Tensor& affinity, const std::vector<int64_t>& members);

}  // namespace sparsight
