#include "sparsight/ops/cpu/layer_norm.h"

#include <ATen/ops/empty.h>

#include "sparsight/kernels/elementwise/layer_norm.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::cpu {

LayerNormOutput layer_norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   double epsilon, bool needs_moments) {
  LayerNormOutput output{empty_from_arena(x.sizes()), {}};
  if (needs_moments) output.moments = at::empty({x.size(0), 2}, at::kFloat);
  layer_norm(torch_threads(), {.rows = x.size(0),
                               .width = x.size(1),
                               .x = x.const_data_ptr<float>(),
                               .weight = weight.const_data_ptr<float>(),
                               .bias = bias.const_data_ptr<float>(),
                               .epsilon = epsilon,
                               .out = output.out.data_ptr<float>(),
                               .moments = needs_moments ? output.moments.data_ptr<float>() : nullptr});
  return output;
}

LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& moments, const at::Tensor& residual, bool needs_weights) {
  LayerNormGradients out{empty_from_arena(x.sizes()), {}, {}};
  if (needs_weights) out.weight = at::empty({x.size(1)}, at::kFloat), out.bias = at::empty({x.size(1)}, at::kFloat);
  layer_norm_backward(torch_threads(), {.rows = x.size(0),
                                        .width = x.size(1),
                                        .grad = grad.const_data_ptr<float>(),
                                        .x = x.const_data_ptr<float>(),
                                        .weight = weight.const_data_ptr<float>(),
                                        .moments = moments.const_data_ptr<float>(),
                                        .residual = residual.defined() ? residual.const_data_ptr<float>() : nullptr,
                                        .x_grad = out.x.data_ptr<float>(),
                                        .weight_grad = needs_weights ? out.weight.data_ptr<float>() : nullptr,
                                        .bias_grad = needs_weights ? out.bias.data_ptr<float>() : nullptr});
  return out;
}

}  // namespace sparsight::cpu
