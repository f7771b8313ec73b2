#include "sparsight/ops/expert_mlp.h"

#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/expert_mlp.h"
#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/off_cpu.h"
#include "sparsight/ops/ref/expert_mlp.h"
#include "sparsight/ops/ref/grouped_linear.h"
#include "sparsight/ops/ref/rows.h"
#include "sparsight/ops/saved_products.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The kernels need fp32 and weights that are not empty.
bool has_expert_kernels(const at::Tensor& tokens, const ExpertMlpWeights& weights) {
  return tokens.scalar_type() == at::kFloat && weights.w1.numel() > 0;
}

// Autograd does not take undefined tensors.
using Optional = std::optional<at::Tensor>;
Optional given(const at::Tensor& x) { return x.defined() ? Optional(x) : std::nullopt; }

class ExpertMlp : public torch::autograd::Function<ExpertMlp> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tokens, const ExpertRows& rows,
                            const Optional& gate_in, const at::Tensor& w1, const Optional& b1_in, const at::Tensor& w2,
                            const Optional& b2_in, const ExpertMlpOptions& options) {
    const at::Tensor gate = gate_in.value_or(at::Tensor()), b1 = b1_in.value_or(at::Tensor());
    const at::Tensor b2 = b2_in.value_or(at::Tensor());
    at::Tensor pre_activation;
    ExpertRows in = rows;
    in.gate = gate;
    at::Tensor out = expert_mlp_forward(tokens, in, {w1, b1, w2, b2}, options.activation,
                                        !options.recompute ? &pre_activation : nullptr);
    const RowMap& map = rows.map;
    context->save_for_backward({tokens, gate, w1, b1, w2, b2, pre_activation, rows.offsets, map.row_token,
                                map.token_rows, map.token_offsets, rows.dropout.bits});
    context->saved_data["activation"] = static_cast<int64_t>(options.activation);
    context->saved_data["tokens"] = map.tokens;
    context->saved_data["in_place"] = map.in_place;
    context->saved_data["dropout_scale"] = static_cast<double>(rows.dropout.scale);
    save_products(context);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative();
    const SavedProducts products(context);
    const auto saved = context->get_saved_variables();
    const ExpertRows rows{{context->saved_data["tokens"].toInt(), saved[8], saved[9], saved[10],
                           context->saved_data["in_place"].toBool()},
                          saved[7],
                          saved[1],
                          {saved[11], static_cast<float>(context->saved_data["dropout_scale"].toDouble())}};
    const bool has_gate = saved[1].defined();
    size_t edge = has_gate ? 2 : 1;
    bool needs_weights = false;
    for (size_t i = 2; i < 6; ++i)
      if (saved[i].defined()) needs_weights = context->needs_input_grad(edge++) || needs_weights;
    const ExpertMlpGradients out =
        expert_mlp_backward(grads[0].contiguous(), saved[0], rows, {saved[2], saved[3], saved[4], saved[5]},
                            static_cast<Activation>(context->saved_data["activation"].toInt()), saved[6],
                            {context->needs_input_grad(0), has_gate && context->needs_input_grad(1), needs_weights});
    const ExpertMlpWeights& w = out.weights;
    return {out.tokens, {}, out.gate, w.w1, w.b1, w.w2, w.b2, {}, {}};
  }
};

// The same by operations that autograd differentiates any number of times.
at::Tensor differentiable_expert_mlp(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& w,
                                     Activation activation) {
  const at::Tensor in = ref::gather_rows(tokens, {}, rows.map);
  at::Tensor hidden = activate(ref::grouped_linear(in, rows.offsets, w.w1, w.b1), activation);
  if (rows.dropout.defined()) hidden = hidden * dropout_factors(rows.dropout, hidden.size(1), hidden);
  return ref::scatter_add_rows(ref::grouped_linear(hidden, rows.offsets, w.w2, w.b2), rows.gate, rows.map);
}

void check_bias(const at::Tensor& bias, const at::Tensor& weight, const char* name) {
  if (bias.defined() && (bias.dim() != 2 || bias.size(0) != weight.size(0) || bias.size(1) != weight.size(2)))
    fail("expert bias ", name, " needs shape [", weight.size(0), ", ", weight.size(2), "], got ", bias.sizes());
}

void check_dropout(const ExpertRows& rows, int64_t hidden) {
  const at::Tensor& bits = rows.dropout.bits;
  const int64_t count = rows.map.row_token.size(0), bytes = (hidden + 7) / 8;
  if (bits.defined() && (!bits.is_contiguous() || bits.scalar_type() != at::kByte || !bits.is_cpu() ||
                         bits.sizes() != at::IntArrayRef{count, bytes}))
    fail("dropout of experts needs contiguous uint8 bits of shape [", count, ", ", bytes, "] on the CPU, got ",
         bits.sizes(), " of ", bits.scalar_type());
}

void check_offsets(const at::Tensor& offsets, int64_t rows) {
  const int64_t* offset = offsets.const_data_ptr<int64_t>();
  const int64_t experts = offsets.size(0) - 1;
  bool rising = offset[0] == 0 && offset[experts] == rows;
  for (int64_t e = 0; e < experts; ++e) rising = rising && offset[e] <= offset[e + 1];
  if (!rising) fail("the offsets of experts must not decrease, and go from 0 to the number of rows, ", rows);
}

}  // namespace

void check_weights(const ExpertMlpWeights& w, at::ScalarType type, at::Device device) {
  if (w.w1.dim() != 3 || w.w2.dim() != 3 || w.w1.size(0) != w.w2.size(0) || w.w1.size(1) != w.w2.size(2) ||
      w.w1.size(2) != w.w2.size(1))
    fail("expert weights need shapes [E,D,F] and [E,F,D], got ", w.w1.sizes(), " and ", w.w2.sizes());
  check_bias(w.b1, w.w1, "b1");
  check_bias(w.b2, w.w2, "b2");
  for (const at::Tensor* t : {&w.w1, &w.b1, &w.w2, &w.b2})
    if (t->defined() && (t->scalar_type() != type || t->device() != device))
      fail("experts need tokens and weights of one type and device, got ", type, " on ", device, " and ",
           t->scalar_type(), " on ", t->device());
}

ExpertRows checked_rows(const at::Tensor& tokens, const ExpertRows& rows, int64_t experts, int64_t width) {
  if (tokens.dim() != 2) fail("experts need tokens [N,D], got ", tokens.sizes());
  if (tokens.size(1) != width) fail("tokens of width ", tokens.size(1), " do not fit experts of width ", width);
  const RowMap& map = rows.map;
  if (map.tokens != tokens.size(0) || map.row_token.dim() != 1 || map.token_rows.sizes() != map.row_token.sizes())
    fail("the row map of the experts is for ", map.tokens, " tokens, got ", tokens.size(0));
  if (rows.offsets.dim() != 1 || rows.offsets.size(0) != experts + 1 || rows.offsets.scalar_type() != at::kLong)
    fail(experts, " experts need ", experts + 1, " int64 offsets, got ", rows.offsets.sizes(), " of ",
         rows.offsets.scalar_type());
  if (rows.gate.defined() && (rows.gate.dim() != 1 || rows.gate.size(0) != map.row_token.size(0)))
    fail("experts with ", map.row_token.size(0), " rows need as many gates, got ", rows.gate.sizes());
  ExpertRows in{{map.tokens, map.row_token.contiguous(), map.token_rows.contiguous(), map.token_offsets.contiguous(),
                 map.in_place},
                rows.offsets.to(at::kCPU).contiguous(),
                rows.gate.defined() ? rows.gate.contiguous() : rows.gate,
                rows.dropout};
  check_offsets(in.offsets, map.row_token.size(0));
  return in;
}

at::Tensor expert_mlp(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& w,
                      const ExpertMlpOptions& options) {
  check_weights(w, tokens.scalar_type(), tokens.device());
  const ExpertRows in = checked_rows(tokens, rows, w.w1.size(0), w.w1.size(1));
  check_dropout(in, w.w1.size(2));
  if (TwiceDifferentiable::wanted()) return differentiable_expert_mlp(tokens, in, w, options.activation);
  bool keep = at::GradMode::is_enabled();
  if (keep) {
    keep = tokens.requires_grad();
    for (const at::Tensor* t : {&rows.gate, &w.w1, &w.b1, &w.w2, &w.b2})
      keep = keep || (t->defined() && t->requires_grad());
  }
  const auto either = [](const at::Tensor& x) { return x.mT().is_contiguous() ? x : x.contiguous(); };
  const ExpertMlpWeights dense{either(w.w1), w.b1.defined() ? w.b1.contiguous() : w.b1, either(w.w2),
                               w.b2.defined() ? w.b2.contiguous() : w.b2};
  if (!keep) {  // autograd costs as much as an expert on one token
    const c10::AutoGradMode no_grad(false);
    return expert_mlp_forward(tokens.contiguous(), in, dense, options.activation, nullptr);
  }
  return ExpertMlp::apply(tokens.contiguous(), in, given(in.gate), dense.w1, given(dense.b1), dense.w2, given(dense.b2),
                          options);
}

ExpertRows rows_in_place(const at::Tensor& rows, const at::Tensor& offsets) {
  const at::Tensor each = at::arange(rows.size(0), rows.options().dtype(at::kLong).requires_grad(false));
  const at::Tensor ends = at::arange(rows.size(0) + 1, each.options());
  return {{rows.size(0), each, each, ends, /*in_place=*/true}, offsets, {}};
}

at::Tensor expert_mlp_forward(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& weights,
                              Activation activation, at::Tensor* kept, const ResidualAdd& add, KeptHidden what) {
  if (tokens.is_cpu() && has_expert_kernels(tokens, weights))
    return cpu::expert_mlp_forward(tokens, rows, weights, activation, kept, add, what);
  const at::Tensor out = tokens.is_cpu() ? ref::expert_mlp_forward(tokens, rows, weights, activation, kept)
                                         : off_cpu::expert_mlp_forward(tokens, rows, weights, activation, kept);
  return add_residual(out, add);
}

ExpertMlpGradients expert_mlp_backward(const at::Tensor& grad, const at::Tensor& tokens, const ExpertRows& rows,
                                       const ExpertMlpWeights& weights, Activation activation, const at::Tensor& kept,
                                       ExpertMlpNeeds needs, KeptHidden what) {
  if (!tokens.is_cpu()) return off_cpu::expert_mlp_backward(grad, tokens, rows, weights, activation, kept, needs);
  return has_expert_kernels(tokens, weights)
             ? cpu::expert_mlp_backward(grad, tokens, rows, weights, activation, kept, needs, what)
             : ref::expert_mlp_backward(grad, tokens, rows, weights, activation, kept, needs);
}

}  // namespace sparsight
