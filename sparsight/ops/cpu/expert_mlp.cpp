#include "sparsight/ops/cpu/expert_mlp.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "sparsight/core/error.h"
#include "sparsight/kernels/experts/expert_mlp.h"
#include "sparsight/kernels/experts/packed_tiles.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/residual_rows.h"
#include "sparsight/ops/cpu/row_numbers.h"
#include "sparsight/ops/product_type.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::cpu {
namespace {

// [R], or undefined.
at::Tensor float_gate(const ExpertRows& rows) {
  return rows.gate.defined() ? rows.gate.to(at::kFloat).contiguous() : rows.gate;
}

// gate: float_gate(rows), which outlives the result.
ExpertRowNumbers to_row_numbers(const ExpertRows& rows, const at::Tensor& gate) {
  return {.map = row_numbers(rows.map),
          .in_place = rows.map.in_place,
          .offset = rows.offsets.const_data_ptr<int64_t>(),
          .gate = float_data(gate),
          .dropout = rows.dropout.defined() ? rows.dropout.bits.const_data_ptr<uint8_t>() : nullptr,
          .dropout_scale = rows.dropout.scale};
}

StoredExperts stored(const ExpertRows& rows, const ExpertMlpWeights& w) {
  return {.shape = {w.w1.size(0), w.w1.size(1), w.w1.size(2), rows.map.row_token.size(0)},
          .b1 = float_data(w.b1),
          .b2 = float_data(w.b2),
          .w1 = weight_view(w.w1),
          .w2 = weight_view(w.w2)};
}

StoredExperts stored(const ExpertRows& rows, const PackedExperts& packed, const PackedLayout& layout) {
  return {.shape = {packed.experts, packed.width, packed.hidden, rows.map.row_token.size(0)},
          .b1 = float_data(packed.weights.b1),
          .b2 = float_data(packed.weights.b2),
          .panels = packed.storage.const_data_ptr(),
          .layout = layout,
          .scale1 = float_data(packed.scale1),
          .scale2 = float_data(packed.scale2)};
}

// A new tensor in the same layout.
at::Tensor empty_weights_like(const at::Tensor& w) {
  return w.is_contiguous() ? empty_from_arena(w.sizes()) : empty_from_arena(w.mT().sizes()).mT();
}

}  // namespace

at::Tensor expert_mlp_forward(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& w,
                              Activation activation, at::Tensor* kept, const ResidualAdd& add, KeptHidden what) {
  const at::Tensor gate = float_gate(rows);
  const StoredExperts experts = stored(rows, w);
  const at::Tensor out = empty_from_arena({rows.map.tokens, experts.shape.width});
  if (kept) *kept = empty_from_arena({experts.shape.rows, experts.shape.hidden});
  expert_mlp_forward(torch_threads(), to_row_numbers(rows, gate), experts,
                     {.tokens = float_data(tokens),
                      .activation = activation,
                      .bf16 = multiplies_bf16(),
                      .residual = residual_rows(add, experts.shape.width),
                      .kept = kept ? kept->data_ptr<float>() : nullptr,
                      .keeps_slope = what == KeptHidden::slope,
                      .out = out.data_ptr<float>()});
  return out;
}

at::Tensor packed_experts_forward(const at::Tensor& tokens, const ExpertRows& rows, const PackedExperts& packed,
                                  const PackedLayout& layout, Activation activation) {
  const at::Tensor gate = float_gate(rows);
  const at::Tensor out = empty_from_arena({rows.map.tokens, packed.width});
  expert_mlp_forward(torch_threads(), to_row_numbers(rows, gate), stored(rows, packed, layout),
                     {.tokens = float_data(tokens),
                      .activation = activation,
                      .bf16 = multiplies_bf16(),
                      .residual = {},
                      .kept = nullptr,
                      .keeps_slope = false,
                      .out = out.data_ptr<float>()});
  return out;
}

#if defined(__x86_64__)
at::Tensor packed_tiles_forward(const at::Tensor& tokens, const ExpertRows& rows, const PackedExperts& packed,
                                const PackedLayout& layout, Activation activation) {
  const at::Tensor gate = float_gate(rows);
  at::Tensor out = at::empty({rows.map.tokens, packed.width}, tokens.options());
  packed_tiles_forward(torch_threads(), to_row_numbers(rows, gate), stored(rows, packed, layout), float_data(tokens),
                       activation, /*residual=*/nullptr, out.data_ptr<float>());
  return out;
}
#endif

ExpertMlpGradients expert_mlp_backward(const at::Tensor& grad, const at::Tensor& tokens, const ExpertRows& rows,
                                       const ExpertMlpWeights& w, Activation activation, const at::Tensor& kept,
                                       ExpertMlpNeeds needs, KeptHidden what) {
  const bool kept_slope = kept.defined() && what == KeptHidden::slope;
  if (kept_slope && (needs.gate || needs.weights || rows.gate.defined()))
    fail("the slope of the hidden layer is not enough for gates, nor for the gradients of weights");
  const at::Tensor gate = float_gate(rows);
  const StoredExperts experts = stored(rows, w);
  ExpertMlpGradients out;
  if (needs.weights)
    out.weights = {.w1 = empty_weights_like(w.w1),
                   .b1 = w.b1.defined() ? at::empty_like(w.b1) : w.b1,
                   .w2 = empty_weights_like(w.w2),
                   .b2 = w.b2.defined() ? at::empty_like(w.b2) : w.b2};
  if (needs.tokens) out.tokens = empty_from_arena({rows.map.tokens, experts.shape.width});
  at::Tensor gate_grad;
  if (needs.gate) gate_grad = at::empty({experts.shape.rows}, at::kFloat);
  expert_mlp_backward(torch_threads(), to_row_numbers(rows, gate), experts,
                      {.grad = float_data(grad),
                       .tokens = float_data(tokens),
                       .activation = activation,
                       .bf16 = multiplies_bf16(),
                       .kept = float_data(kept),
                       .kept_slope = kept_slope,
                       .tokens_grad = floats_to(out.tokens),
                       .gate_grad = floats_to(gate_grad),
                       .w1_grad = needs.weights ? weight_view(out.weights.w1) : WeightView{},
                       .w2_grad = needs.weights ? weight_view(out.weights.w2) : WeightView{},
                       .b1_grad = floats_to(out.weights.b1),
                       .b2_grad = floats_to(out.weights.b2)});
  if (needs.gate) out.gate = gate_grad.to(rows.gate.scalar_type());
  return out;
}

}  // namespace sparsight::cpu
