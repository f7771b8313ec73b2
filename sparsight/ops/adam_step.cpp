#include "sparsight/ops/adam_step.h"

#include "sparsight/core/error.h"
#include "sparsight/ops/off_cpu.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
namespace {

// Strides of axes of size 1 say nothing.
bool has_strides(const at::Tensor& x, const at::Tensor& other) {
  for (int64_t axis = 0; axis < x.dim(); ++axis)
    if (x.size(axis) > 1 && x.stride(axis) != other.stride(axis)) return false;
  return true;
}

// Whether element i in memory is the same element of all tensors.
bool has_one_order(const AdamTensors& p) {
  if (!p.value.is_non_overlapping_and_dense()) return false;
  for (const at::Tensor* other : {&p.gradient, &p.exp_avg, &p.exp_avg_sq, &p.average})
    if (other->defined() && !has_strides(*other, p.value)) return false;
  return true;
}

bool is_fp32_on_cpu(const AdamTensors& p) {
  for (const at::Tensor* x : {&p.value, &p.gradient, &p.exp_avg, &p.exp_avg_sq, &p.average})
    if (x->defined() && (x->scalar_type() != at::kFloat || !x->is_cpu() || x->layout() != at::kStrided)) return false;
  return true;
}

// Counts versions as torch's in-place operations do, so that autograd detects saved tensors that were overwritten.
void count_writes(const AdamTensors& p) {
  for (const at::Tensor* x : {&p.value, &p.exp_avg, &p.exp_avg_sq, &p.average})
    if (x->defined() && !x->is_inference()) x->unsafeGetTensorImpl()->bump_version();
}

cpu::AdamParameter to_arrays(const AdamTensors& p) {
  return {.arrays = {.value = p.value.data_ptr<float>(),
                     .gradient = p.gradient.const_data_ptr<float>(),
                     .exp_avg = p.exp_avg.data_ptr<float>(),
                     .exp_avg_sq = p.exp_avg_sq.data_ptr<float>(),
                     .average = p.average.defined() ? p.average.data_ptr<float>() : nullptr,
                     .count = p.value.numel()},
          .updates = p.updates};
}

}  // namespace

void adam_step(const std::vector<AdamTensors>& parameters, const AdamStep& step) {
  std::vector<cpu::AdamParameter> fused;
  for (const AdamTensors& p : parameters) {
    for (const at::Tensor* other : {&p.gradient, &p.exp_avg, &p.exp_avg_sq, &p.average})
      SPARSIGHT_CHECK(!other->defined() || other->sizes() == p.value.sizes());
    if (is_fp32_on_cpu(p) && has_one_order(p)) {
      count_writes(p);
      fused.push_back(to_arrays(p));
    } else {
      off_cpu::adam_step(p, step);
    }
  }
  cpu::adam_step(cpu::torch_threads(), fused, step);
}

}  // namespace sparsight
