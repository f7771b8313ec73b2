// k-means without random numbers.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// [K] cluster of each point, numbered by their smallest points, none of them empty. points: [K,E] float64; 1 <=
// clusters
// <= K. The first seed is the point `first`, each further one the point farthest from all seeds before. Then Lloyd's
// rounds, until no point changes its cluster, at most 300: each point goes to the nearest mean, and an empty cluster
// takes the point that is farthest from its mean and not alone there. Ties go to the lowest index.
std::vector<int64_t> farthest_first_kmeans(const at::Tensor& points, int64_t clusters, int64_t first);

}  // namespace sparsight
