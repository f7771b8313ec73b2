#include "sparsight/eval/precision_at_one.h"

#include <ATen/TensorOperators.h>

#include "sparsight/core/error.h"

namespace sparsight {

PrecisionAtOne precision_at_one(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& valid) {
  const bool several = labels.dim() == 2;
  if (logits.dim() != 2 || labels.dim() < 1 || labels.size(0) != logits.size(0) ||
      (several ? labels.size(1) != logits.size(1) : labels.dim() != 1 || labels.scalar_type() != at::kLong))
    fail("precision@1 takes logits [images, classes] and labels of the same shape, or int64 [images]; got ",
         logits.sizes(), " and ", labels.scalar_type(), " ", labels.sizes());
  if (valid.defined() && (valid.dim() != 1 || valid.size(0) != logits.size(0) || valid.scalar_type() != at::kBool))
    fail("precision@1 takes one bool per image that says whether it counts, got ", valid.scalar_type(), " ",
         valid.sizes());
  if (logits.size(0) == 0) return {};
  const at::Tensor predicted = logits.argmax(1);
  at::Tensor hit = several ? labels.gather(1, predicted.unsqueeze(1)).squeeze(1).ne(0) : predicted.eq(labels);
  if (valid.defined()) hit = hit & valid;
  return {valid.defined() ? valid.sum().item<int64_t>() : logits.size(0), hit.sum().item<int64_t>()};
}

}  // namespace sparsight
