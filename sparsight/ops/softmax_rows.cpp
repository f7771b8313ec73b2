#include "sparsight/ops/softmax_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/core/error.h"
#include "sparsight/kernels/elementwise/softmax_rows.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor softmax_rows_forward(const at::Tensor& x) {
  const at::Tensor in = x.contiguous();
  at::Tensor out = at::empty(in.sizes(), at::kFloat);
  cpu::softmax_rows(cpu::torch_threads(), in.const_data_ptr<float>(), out.data_ptr<float>(), in.size(0), in.size(1));
  return out;
}

class SoftmaxRows : public torch::autograd::Function<SoftmaxRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::Tensor out = softmax_rows_forward(x);
    context->save_for_backward({out});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const at::Tensor out = context->get_saved_variables()[0];
    if (!at::GradMode::is_enabled()) return {at::_softmax_backward_data(grads[0], out, 1, at::kFloat)};
    const at::Tensor weighted = out * grads[0];  // create_graph: by operations that autograd records
    return {weighted - out * weighted.sum(1, /*keepdim=*/true)};
  }
};

}  // namespace

at::Tensor softmax_rows(const at::Tensor& x) {
  if (x.dim() != 2 || !at::isFloatingType(x.scalar_type()))
    fail("the softmax of rows needs a floating matrix [R,C], got ", x.scalar_type(), " ", x.sizes());
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) return at::softmax(x, 1);
  return at::GradMode::is_enabled() && x.requires_grad() ? SoftmaxRows::apply(x) : softmax_rows_forward(x);
}

}  // namespace sparsight
