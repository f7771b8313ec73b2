#include "sparsight/dg/algorithms/feature_distance.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

at::Tensor in_fp32(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

struct Moments {
  at::Tensor mean, covariance;  // [1,D], [D,D]
};

Moments moments(const at::Tensor& x) {
  if (x.size(0) < 2) fail("coral needs at least 2 images of each domain, got ", x.size(0), "; raise loader.batch");
  const at::Tensor mean = x.mean(0, true), centred = x - mean;
  return {mean, at::matmul(centred.t(), centred) / (x.size(0) - 1)};
}

// Mean of the kernel over all pairs. Squared distances by products, as [N,M,D] would be large.
at::Tensor mean_kernel(const at::Tensor& a, const at::Tensor& b, const std::vector<double>& widths) {
  constexpr double kMinSquare = 1e-30;
  const at::Tensor squares =
      (a.square().sum(1, true) + b.square().sum(1).unsqueeze(0) - 2 * at::matmul(a, b.t())).clamp_min(kMinSquare);
  at::Tensor sum = (squares * -widths.at(0)).exp();
  for (size_t i = 1; i < widths.size(); ++i) sum = sum + (squares * -widths[i]).exp();
  return sum.mean();
}

}  // namespace

at::Tensor coral_distance(const at::Tensor& a, const at::Tensor& b) {
  const Moments of_a = moments(in_fp32(a)), of_b = moments(in_fp32(b));
  return (of_a.mean - of_b.mean).square().mean() + (of_a.covariance - of_b.covariance).square().mean();
}

at::Tensor mmd_distance(const at::Tensor& a, const at::Tensor& b, const std::vector<double>& widths) {
  const at::Tensor x = in_fp32(a), y = in_fp32(b);
  return mean_kernel(x, x, widths) + mean_kernel(y, y, widths) - 2 * mean_kernel(x, y, widths);
}

at::Tensor mmd_distance(const at::Tensor& a, const at::Tensor& b) {
  return mmd_distance(a, b, {1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3});
}

at::Tensor mean_pair_distance(const std::vector<at::Tensor>& features, const FeatureDistance& distance) {
  at::Tensor sum = at::zeros({}, features.at(0).options().dtype(at::kFloat));
  int64_t pairs = 0;
  for (size_t i = 0; i < features.size(); ++i)
    for (size_t j = i + 1; j < features.size(); ++j, ++pairs) sum = sum + distance(features[i], features[j]);
  return pairs > 0 ? sum / pairs : sum;
}

}  // namespace sparsight
