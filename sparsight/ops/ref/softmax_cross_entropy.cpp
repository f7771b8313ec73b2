#include "sparsight/ops/ref/softmax_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>

namespace sparsight::ref {
namespace {

at::Tensor in_fp32_or_fp64(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

}  // namespace

at::Tensor softmax_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, double label_smoothing) {
  const at::Tensor log_p = at::log_softmax(in_fp32_or_fp64(logits), 1);
  if (targets.dim() == 2) return -(targets.to(log_p.scalar_type()) * log_p).sum(1);
  const at::Tensor own = -log_p.gather(1, targets.unsqueeze(1)).squeeze(1);
  if (label_smoothing == 0) return own;
  return (1 - label_smoothing) * own - label_smoothing * log_p.mean(1);
}

at::Tensor softmax_cross_entropy_gradient(const at::Tensor& grad, const at::Tensor& logits, const at::Tensor& targets,
                                          double label_smoothing) {
  const at::Tensor p = at::softmax(in_fp32_or_fp64(logits), 1);
  if (targets.dim() == 2) {
    const at::Tensor t = targets.to(p.scalar_type());
    return grad.unsqueeze(1) * (p * t.sum(1, /*keepdim=*/true) - t);
  }
  const double shared = label_smoothing / static_cast<double>(logits.size(1));
  const at::Tensor t = at::full_like(p, shared).scatter(1, targets.unsqueeze(1), 1 - label_smoothing + shared);
  return grad.unsqueeze(1) * (p - t);
}

}  // namespace sparsight::ref
