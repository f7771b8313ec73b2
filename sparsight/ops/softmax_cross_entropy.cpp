#include "sparsight/ops/softmax_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/softmax_cross_entropy.h"
#include "sparsight/ops/off_cpu.h"
#include "sparsight/ops/ref/softmax_cross_entropy.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class CrossEntropyOfRows : public torch::autograd::Function<CrossEntropyOfRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& targets,
                            double label_smoothing) {
    const cpu::CrossEntropyOutput output =
        cpu::softmax_cross_entropy_forward(logits, targets, label_smoothing, /*needs_moments=*/true);
    context->save_for_backward({logits, targets, output.moments});
    context->saved_data["label_smoothing"] = label_smoothing;
    return output.loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const double label_smoothing = context->saved_data["label_smoothing"].toDouble();
    if (at::GradMode::is_enabled())  // create_graph: by operations that autograd records
      return {ref::softmax_cross_entropy_gradient(grads[0], saved[0], saved[1], label_smoothing), {}, {}};
    return {cpu::softmax_cross_entropy_backward(grads[0].contiguous(), saved[0], saved[1], label_smoothing, saved[2]),
            {},
            {}};
  }
};

void check_label_range(const at::Tensor& labels, int64_t classes) {
  const int64_t* const label = labels.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < labels.size(0); ++i)
    if (label[i] < 0 || label[i] >= classes)
      fail("cross-entropy of ", classes, " classes needs labels from 0 to ", classes - 1, ", got ", label[i],
           " in row ", i);
}

void check_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, double label_smoothing) {
  if (logits.dim() != 2 || logits.size(1) == 0 || !at::isFloatingType(logits.scalar_type()))
    fail("cross-entropy needs floating logits [B,K] with K >= 1, got ", logits.scalar_type(), " ", logits.sizes());
  const bool labels = targets.dim() == 1 && targets.size(0) == logits.size(0) && targets.scalar_type() == at::kLong;
  if (!labels && (targets.sizes() != logits.sizes() || !at::isFloatingType(targets.scalar_type())))
    fail("cross-entropy of logits ", logits.sizes(), " needs labels [", logits.size(0),
         "] of type Long or floating targets ", logits.sizes(), ", got ", targets.scalar_type(), " ", targets.sizes());
  if (!(label_smoothing >= 0 && label_smoothing < 1))
    fail("label smoothing must be at least 0 and below 1, got ", label_smoothing);
}

}  // namespace

at::Tensor softmax_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, double label_smoothing) {
  check_cross_entropy(logits, targets, label_smoothing);
  const bool labels = targets.dim() == 1, in_fp64 = logits.scalar_type() == at::kDouble;
  at::Tensor t = labels ? targets.contiguous() : targets.to(in_fp64 ? at::kDouble : at::kFloat).contiguous();
  if (labels && t.is_cpu()) check_label_range(t, logits.size(1));
  if (!labels && label_smoothing != 0) {
    t = (1 - label_smoothing) * t + label_smoothing / static_cast<double>(logits.size(1));
    label_smoothing = 0;
  }
  if (!logits.is_cpu()) return off_cpu::softmax_cross_entropy(logits, t, label_smoothing);
  // The kernels have no gradient of targets.
  if (in_fp64 || (at::GradMode::is_enabled() && t.requires_grad()))
    return ref::softmax_cross_entropy(logits, t, label_smoothing);
  const at::Tensor rows = logits.to(at::kFloat).contiguous();
  return at::GradMode::is_enabled()
             ? CrossEntropyOfRows::apply(rows, t, label_smoothing)
             : cpu::softmax_cross_entropy_forward(rows, t, label_smoothing, /*needs_moments=*/false).loss;
}

}  // namespace sparsight
