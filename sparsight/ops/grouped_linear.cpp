#include "sparsight/ops/grouped_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/grouped_linear.h"
#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/off_cpu.h"
#include "sparsight/ops/ref/grouped_linear.h"
#include "sparsight/ops/saved_products.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The kernels need fp32 and a weight that is not empty.
bool has_linear_kernels(const at::Tensor& rows, const at::Tensor& weight) {
  return rows.scalar_type() == at::kFloat && weight.numel() > 0;
}

class GroupedLinear : public torch::autograd::Function<GroupedLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const at::Tensor& offsets,
                            const at::Tensor& weight, const std::optional<at::Tensor>& bias_in) {
    const at::Tensor bias = bias_in.value_or(at::Tensor());
    context->save_for_backward({rows, offsets, weight});
    context->saved_data["bias"] = bias.defined();
    save_products(context);
    return grouped_linear_forward(rows, offsets, weight, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    const SavedProducts products(context);
    const auto saved = context->get_saved_variables();
    const GroupedLinearGradients out =
        grouped_linear_backward(grads[0].contiguous(), saved[0], saved[1], saved[2],
                                {context->needs_input_grad(0), context->needs_input_grad(2),
                                 context->saved_data["bias"].toBool() && context->needs_input_grad(3)});
    return {out.rows, {}, out.weight, out.bias};
  }
};

void check(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight, const at::Tensor& bias) {
  if (rows.dim() != 2 || weight.dim() != 3 || rows.size(1) != weight.size(1))
    fail("a grouped linear map needs rows [R,I] and a weight [E,I,O], got ", rows.sizes(), " and ", weight.sizes());
  if (offsets.dim() != 1 || offsets.size(0) != weight.size(0) + 1)
    fail("a grouped linear map over ", weight.size(0), " experts needs ", weight.size(0) + 1, " offsets, got ",
         offsets.sizes());
  if (bias.defined() && (bias.dim() != 2 || bias.size(0) != weight.size(0) || bias.size(1) != weight.size(2)))
    fail("the bias of a grouped linear map with weight ", weight.sizes(), " needs shape [", weight.size(0), ", ",
         weight.size(2), "], got ", bias.sizes());
  if (rows.scalar_type() != weight.scalar_type() || (bias.defined() && bias.scalar_type() != weight.scalar_type()))
    fail("a grouped linear map needs rows, weight and bias of one type, got ", rows.scalar_type(), ", ",
         weight.scalar_type(), " and ", bias.defined() ? bias.scalar_type() : weight.scalar_type());
}

}  // namespace

at::Tensor one_group(const at::Tensor& rows) {
  at::Tensor offsets = at::empty({2}, at::kLong);
  int64_t* const offset = offsets.data_ptr<int64_t>();
  offset[0] = 0;
  offset[1] = rows.size(0);
  return offsets;
}

at::Tensor grouped_linear(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                          const at::Tensor& bias) {
  check(rows, offsets, weight, bias);
  const at::Tensor x = rows.contiguous(), ends = offsets.to(at::kCPU).contiguous();
  const at::Tensor w = weight.mT().is_contiguous() ? weight : weight.contiguous();
  const at::Tensor b = bias.defined() ? bias.contiguous() : bias;
  if (TwiceDifferentiable::wanted()) return ref::grouped_linear(x, ends, w, b);
  if (!at::GradMode::is_enabled())
    return grouped_linear_forward(x, ends, w, b);  // autograd costs as much as a small GEMM
  return GroupedLinear::apply(x, ends, w, b.defined() ? std::optional<at::Tensor>(b) : std::nullopt);
}

at::Tensor grouped_linear_forward(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                                  const at::Tensor& bias, const ResidualAdd& add) {
  if (rows.is_cpu() && has_linear_kernels(rows, weight))
    return cpu::grouped_linear_forward(rows, offsets, weight, bias, add);
  const at::Tensor out = rows.is_cpu() ? ref::grouped_linear_forward(rows, offsets, weight, bias)
                                       : off_cpu::grouped_linear_forward(rows, offsets, weight, bias);
  return add_residual(out, add);
}

GroupedLinearGradients grouped_linear_backward(const at::Tensor& grad, const at::Tensor& rows,
                                               const at::Tensor& offsets, const at::Tensor& weight,
                                               GroupedLinearNeeds needs) {
  if (!rows.is_cpu()) return off_cpu::grouped_linear_backward(grad, rows, offsets, weight, needs);
  return has_linear_kernels(rows, weight) ? cpu::grouped_linear_backward(grad, rows, offsets, weight, needs)
                                          : ref::grouped_linear_backward(grad, rows, offsets, weight, needs);
}

}  // namespace sparsight
