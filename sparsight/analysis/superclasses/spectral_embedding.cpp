#include "sparsight/analysis/superclasses/spectral_embedding.h"

#include <cmath>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_eigh.h>

#include "sparsight/analysis/superclasses/affinity.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// LAPACK divides its sums by the number of threads, which at::set_num_threads alone tells it.
class OneLapackThread {
 public:
  OneLapackThread() : before_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneLapackThread() { at::set_num_threads(before_); }
  OneLapackThread(const OneLapackThread&) = delete;
  OneLapackThread& operator=(const OneLapackThread&) = delete;

 private:
  int before_;
};

}  // namespace

SpectralEmbedding spectral_embedding(const at::Tensor& affinity, int64_t dimensions, double tau) {
  const int64_t n = affinity.size(0);
  SPARSIGHT_CHECK(dimensions >= 1 && dimensions <= n);
  const OneLapackThread one;
  const auto [ascending, columns] = at::linalg_eigh(normalised_affinity(affinity, tau));
  const at::Tensor values = ascending.contiguous(), vectors = columns.contiguous();
  SpectralEmbedding embedding;
  const double* value = values.const_data_ptr<double>();
  for (int64_t i = n - 1; i >= 0; --i) embedding.eigenvalues.push_back(value[i]);
  if (dimensions < n) embedding.gap = value[n - dimensions] - value[n - dimensions - 1];

  embedding.points = at::empty({n, dimensions}, at::kDouble);
  const double* vector = vectors.const_data_ptr<double>();
  double* point = embedding.points.mutable_data_ptr<double>();
  for (int64_t i = 0; i < n; ++i, point += dimensions) {
    double square = 0;
    for (int64_t e = 0; e < dimensions; ++e) {
      point[e] = vector[i * n + n - 1 - e];
      square += point[e] * point[e];
    }
    // The first eigenvector is positive everywhere, as all of the normalised affinity is: the length is never 0.
    for (int64_t e = 0; e < dimensions; ++e) point[e] /= std::sqrt(square);
  }
  return embedding;
}

}  // namespace sparsight
