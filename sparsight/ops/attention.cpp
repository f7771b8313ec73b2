#include "sparsight/ops/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/attention.h"
#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/off_cpu.h"
#include "sparsight/ops/ref/attention.h"
#include "sparsight/ops/saved_products.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class SelfAttention : public torch::autograd::Function<SelfAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, int64_t heads, int64_t queries) {
    const AttentionOutput output = attention_forward(qkv, heads, /*needs_log_sum=*/true, queries);
    context->save_for_backward({qkv, output.out, output.log_sum});
    save_products(context);
    return output.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("attention has");
    const SavedProducts products(context);
    const auto saved = context->get_saved_variables();
    return {attention_backward(grads[0].contiguous(), saved[0], {saved[1], saved[2]}), {}, {}};
  }
};

bool has_attention_kernels(const at::Tensor& qkv) { return qkv.scalar_type() == at::kFloat; }

}  // namespace

void check_attention(const at::Tensor& qkv, int64_t heads, std::optional<int64_t> queries) {
  if (heads < 1) fail("attention needs at least one head, got ", heads);
  if (qkv.dim() != 3 || qkv.size(2) == 0 || qkv.size(2) % (3 * heads) != 0)
    fail("attention with ", heads, " heads needs qkv [B,S,3D] where D is a multiple of the heads, got ", qkv.sizes());
  if (!at::isFloatingType(qkv.scalar_type()))
    fail("attention needs qkv of a floating type, got ", qkv.scalar_type(), "; convert it first");
  if (queries && (*queries < 1 || *queries > qkv.size(1)))
    fail("attention of ", qkv.size(1), " tokens needs 1 to ", qkv.size(1), " queries, got ", *queries);
}

at::Tensor attention(const at::Tensor& qkv, int64_t heads, std::optional<int64_t> queries) {
  check_attention(qkv, heads, queries);
  const at::Tensor x = qkv.contiguous();
  const int64_t count = queries.value_or(x.size(1));
  if (TwiceDifferentiable::wanted()) return ref::attention_forward(x, heads, /*needs_log_sum=*/false, count).out;
  return at::GradMode::is_enabled() ? SelfAttention::apply(x, heads, count)
                                    : attention_forward(x, heads, /*needs_log_sum=*/false, count).out;
}

AttentionOutput attention_forward(const at::Tensor& qkv, int64_t heads, bool needs_log_sum, int64_t queries) {
  if (!qkv.is_cpu()) return off_cpu::attention_forward(qkv, heads, needs_log_sum, queries);
  return has_attention_kernels(qkv) ? cpu::attention_forward(qkv, heads, needs_log_sum, queries)
                                    : ref::attention_forward(qkv, heads, needs_log_sum, queries);
}

at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& qkv, const AttentionOutput& forward) {
  if (!qkv.is_cpu()) return off_cpu::attention_backward(grad, qkv, forward);
  return has_attention_kernels(qkv) ? cpu::attention_backward(grad, qkv, forward)
                                    : ref::attention_backward(grad, qkv, forward);
}

}  // namespace sparsight
