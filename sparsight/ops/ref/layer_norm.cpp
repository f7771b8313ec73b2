#include "sparsight/ops/ref/layer_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>

namespace sparsight::ref {
namespace {

at::Tensor wide(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

}  // namespace

LayerNormOutput layer_norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   double epsilon, bool needs_moments) {
  const at::Tensor rows = wide(x), mean = rows.mean(1, true), difference = rows - mean;
  const at::Tensor scale = at::rsqrt((difference * difference).mean(1, true) + epsilon);
  LayerNormOutput output;
  output.out = (difference * scale * wide(weight) + wide(bias)).to(x.scalar_type());
  if (needs_moments) output.moments = at::cat({mean, scale}, 1);
  return output;
}

// dx = scale (h - mean(h) - n mean(h n)), where n is the normalised row and h = grad * weight.
LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& moments) {
  const at::Tensor mean = moments.narrow(1, 0, 1), scale = moments.narrow(1, 1, 1);
  const at::Tensor normal = (wide(x) - mean) * scale, g = wide(grad), h = g * wide(weight);
  const at::Tensor dx = scale * (h - h.mean(1, true) - normal * (h * normal).mean(1, true));
  const auto type = x.scalar_type();
  return {dx.to(type), (g * normal).sum(0).to(type), g.sum(0).to(type)};
}

}  // namespace sparsight::ref
