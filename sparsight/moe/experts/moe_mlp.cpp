#include "sparsight/moe/experts/moe_mlp.h"

#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Calls `body(expert, first, count)` for each expert that has rows.
template <class Body>
void for_each_group(const at::Tensor& offsets, const Body& body) {
  const int64_t* offset = offsets.const_data_ptr<int64_t>();
  for (int64_t expert = 0; expert + 1 < offsets.size(0); ++expert)
    if (offset[expert] < offset[expert + 1]) body(expert, offset[expert], offset[expert + 1] - offset[expert]);
}

// out[r] = rows[r] W[e] + bias[e]
at::Tensor grouped_linear(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                          const at::Tensor& bias) {
  at::Tensor out = at::empty({rows.size(0), weight.size(2)}, rows.options());
  for_each_group(offsets, [&](int64_t e, int64_t first, int64_t count) {
    at::Tensor block = out.narrow(0, first, count);
    at::addmm_out(block, bias[e], rows.narrow(0, first, count), weight[e]);
  });
  return out;
}

struct LinearGradients {
  at::Tensor rows, weight, bias;
};

// The gradients of grouped_linear; experts without rows get zeros. That of the rows is left out where nobody needs it.
LinearGradients grouped_linear_backward(const at::Tensor& grad, const at::Tensor& rows, const at::Tensor& offsets,
                                        const at::Tensor& weight, bool need_rows) {
  LinearGradients out{{}, at::empty_like(weight), at::empty({weight.size(0), weight.size(2)}, weight.options())};
  if (need_rows) out.rows = at::empty_like(rows);
  const int64_t* offset = offsets.const_data_ptr<int64_t>();
  for (int64_t e = 0; e < weight.size(0); ++e)
    if (offset[e] == offset[e + 1]) {
      out.weight[e].zero_();
      out.bias[e].zero_();
    }
  for_each_group(offsets, [&](int64_t e, int64_t first, int64_t count) {
    const at::Tensor block = grad.narrow(0, first, count);
    at::Tensor weight_grad = out.weight[e], bias_grad = out.bias[e];
    at::mm_out(weight_grad, rows.narrow(0, first, count).t(), block);
    at::sum_out(bias_grad, block, 0);
    if (!need_rows) return;
    at::Tensor rows_grad = out.rows.narrow(0, first, count);
    at::mm_out(rows_grad, block, weight[e].t());
  });
  return out;
}

class MoeMlpFunction : public torch::autograd::Function<MoeMlpFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const at::Tensor& offsets,
                            const at::Tensor& w1, const at::Tensor& b1, const at::Tensor& w2, const at::Tensor& b2,
                            int64_t activation) {
    const at::Tensor hidden = grouped_linear(rows, offsets, w1, b1);
    const at::Tensor active = activate(hidden, static_cast<Activation>(activation));
    context->save_for_backward({rows, offsets, w1, w2, hidden, active});
    context->saved_data["activation"] = activation;
    return grouped_linear(active, offsets, w2, b2);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (at::GradMode::is_enabled())
      fail("experts have no second derivative; do not create a graph of the backward pass");
    const auto saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &offsets = saved[1], &w1 = saved[2], &w2 = saved[3];
    const at::Tensor &hidden = saved[4], &active = saved[5];
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    const LinearGradients second = grouped_linear_backward(grads[0].contiguous(), active, offsets, w2, true);
    const at::Tensor hidden_grad = activate_backward(second.rows, hidden, activation);
    const LinearGradients first = grouped_linear_backward(hidden_grad, rows, offsets, w1, context->needs_input_grad(0));
    return {first.rows, {}, first.weight, first.bias, second.weight, second.bias, {}};
  }
};

}  // namespace

at::Tensor moe_mlp(const at::Tensor& rows, const at::Tensor& offsets, const MoeMlpWeights& weights,
                   Activation activation) {
  SPARSIGHT_CHECK(rows.dim() == 2 && offsets.dim() == 1 && offsets.size(0) == weights.w1.size(0) + 1);
  SPARSIGHT_CHECK(rows.size(1) == weights.w1.size(1) && rows.scalar_type() == weights.w1.scalar_type());
  return MoeMlpFunction::apply(rows.contiguous(), offsets.to(torch::kCPU).contiguous(), weights.w1, weights.b1,
                               weights.w2, weights.b2, static_cast<int64_t>(activation));
}

}  // namespace sparsight
