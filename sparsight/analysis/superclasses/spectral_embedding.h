// Classes as points whose distances follow the confusion graph: Ng, Jordan, Weiss 2001, "On spectral clustering".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

inline constexpr double kSmallEigengap = 1e-9;

struct SpectralEmbedding {
  at::Tensor points;                // [K,E] float64, rows of length 1
  std::vector<double> eigenvalues;  // [K] of the normalised affinity, the largest (1) first
  std::optional<double> gap;        // eigenvalue E minus eigenvalue E + 1; nothing where E = K
};

// The eigenvectors of the `dimensions` largest eigenvalues of normalised_affinity(affinity, tau) as columns, their rows
// divided by their lengths. affinity: [K,K] float64, 1 <= dimensions <= K. A gap below kSmallEigengap says that the
// points depend on rounding. Always on one thread, so that no thread count changes a bit.
SpectralEmbedding spectral_embedding(const at::Tensor& affinity, int64_t dimensions, double tau);

}  // namespace sparsight
