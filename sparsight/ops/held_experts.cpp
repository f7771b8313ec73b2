#include "sparsight/ops/held_experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/expert_mlp.h"
#include "sparsight/ops/cpu/held_tiles.h"
#include "sparsight/ops/cpu/isa.h"
#include "sparsight/ops/cpu/pack_held.h"

namespace sparsight {
namespace {

// The largest |weight| of each output channel / 127; 1 where all are 0. [E,I,O] -> [E,O]
at::Tensor channel_scale(const at::Tensor& weight) {
  const at::Tensor scale = weight.abs().amax(1) / 127;
  return at::where(scale > 0, scale, at::ones_like(scale)).contiguous();
}

at::Tensor to_int8(const at::Tensor& weight, const at::Tensor& scale) {
  return (weight / scale.unsqueeze(1)).round().clamp(-127, 127).to(at::kChar).contiguous();
}

// [E,O], or undefined. A plain clone would keep the strides.
at::Tensor own_bias(const at::Tensor& bias) {
  return bias.defined() ? bias.detach().clone(at::MemoryFormat::Contiguous) : bias;
}

// The layout of `held.tiles`.
cpu::TileLayout layout_of(const HeldExperts& held) {
  return {held.type == HeldType::bf16 ? cpu::WeightType::bf16 : cpu::WeightType::int8, held.width, held.hidden};
}

// The same experts with w1 and w2 in their plain order.
HeldExperts plain(const HeldExperts& held) {
  if (!held.tiles.defined()) return held;
  HeldExperts out = held;
  const cpu::UnpackedWeights w = cpu::unpack_held(held.tiles, layout_of(held));
  out.weights.w1 = w.w1;
  out.weights.w2 = w.w2;
  out.tiles = at::Tensor();
  return out;
}

}  // namespace

HeldExperts hold_experts(const ExpertMlpWeights& w, HeldType type) {
  if (w.w1.scalar_type() != at::kFloat) fail("experts are held from fp32 weights, got ", w.w1.scalar_type());
  check_weights(w, at::kFloat, w.w1.device());
  const at::NoGradGuard no_grad;
  HeldExperts held;
  held.type = type;
  held.experts = w.w1.size(0);
  held.width = w.w1.size(1);
  held.hidden = w.w1.size(2);
  held.weights = {{}, own_bias(w.b1), {}, own_bias(w.b2)};
  if (type == HeldType::bf16) {
    held.weights.w1 = w.w1.to(at::kBFloat16).contiguous();
    held.weights.w2 = w.w2.to(at::kBFloat16).contiguous();
  } else {
    held.scale1 = channel_scale(w.w1);
    held.scale2 = channel_scale(w.w2);
    held.weights.w1 = to_int8(w.w1, held.scale1);
    held.weights.w2 = to_int8(w.w2, held.scale2);
  }
  if (active_isa() == Isa::amx && w.w1.is_cpu() && cpu::fits_tiles(layout_of(held))) {
    held.tiles = cpu::pack_held(held.weights.w1, held.weights.w2, layout_of(held));
    held.weights.w1 = at::Tensor();
    held.weights.w2 = at::Tensor();
  }
  return held;
}

ExpertMlpWeights released_experts(const HeldExperts& held) {
  const ExpertMlpWeights w = plain(held).weights;
  const at::Tensor w1 = w.w1.to(at::kFloat), w2 = w.w2.to(at::kFloat);
  if (held.type == HeldType::bf16) return {w1, w.b1, w2, w.b2};
  return {w1 * held.scale1.unsqueeze(1), w.b1, w2 * held.scale2.unsqueeze(1), w.b2};
}

at::Tensor held_experts(const at::Tensor& tokens, const ExpertRows& rows, const HeldExperts& held,
                        Activation activation) {
  const at::Tensor& stored = held.tiles.defined() ? held.tiles : held.weights.w1;
  if (tokens.scalar_type() != at::kFloat || tokens.device() != stored.device())
    fail("experts held on ", stored.device(), " take fp32 tokens there, got ", tokens.scalar_type(), " on ",
         tokens.device());
  const at::NoGradGuard no_grad;
  const ExpertRows in = checked_rows(tokens, rows, held.experts, held.width);
  if (!tokens.is_cpu()) return expert_mlp_forward(tokens.contiguous(), in, released_experts(held), activation, nullptr);
#if defined(__x86_64__)
  if (held.tiles.defined() && active_isa() == Isa::amx)
    return cpu::held_tiles_forward(tokens.contiguous(), in, held, layout_of(held), activation);
#endif
  return cpu::held_experts_forward(tokens.contiguous(), in, plain(held), activation);
}

}  // namespace sparsight
