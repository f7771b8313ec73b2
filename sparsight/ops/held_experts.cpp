#include "sparsight/ops/held_experts.h"

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/expert_mlp.h"

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

at::ScalarType scalar_type(HeldType type) { return type == HeldType::bf16 ? at::kBFloat16 : at::kChar; }

}  // namespace

HeldExperts hold_experts(const ExpertMlpWeights& w, HeldType type) {
  if (w.w1.scalar_type() != at::kFloat) fail("experts are held from fp32 weights, got ", w.w1.scalar_type());
  const at::NoGradGuard no_grad;
  HeldExperts held;
  held.type = type;
  held.weights = {{}, w.b1.defined() ? w.b1.detach().clone() : w.b1, {}, w.b2.defined() ? w.b2.detach().clone() : w.b2};
  if (type == HeldType::bf16) {
    held.weights.w1 = w.w1.to(at::kBFloat16).contiguous();
    held.weights.w2 = w.w2.to(at::kBFloat16).contiguous();
  } else {
    held.scale1 = channel_scale(w.w1);
    held.scale2 = channel_scale(w.w2);
    held.weights.w1 = to_int8(w.w1, held.scale1);
    held.weights.w2 = to_int8(w.w2, held.scale2);
  }
  return held;
}

ExpertMlpWeights released_experts(const HeldExperts& held) {
  const ExpertMlpWeights& w = held.weights;
  const at::Tensor w1 = w.w1.to(at::kFloat), w2 = w.w2.to(at::kFloat);
  if (held.type == HeldType::bf16) return {w1, w.b1, w2, w.b2};
  return {w1 * held.scale1.unsqueeze(1), w.b1, w2 * held.scale2.unsqueeze(1), w.b2};
}

at::Tensor held_experts(const at::Tensor& tokens, const ExpertRows& rows, const HeldExperts& held,
                        Activation activation) {
  if (tokens.scalar_type() != at::kFloat) fail("held experts take fp32 tokens, got ", tokens.scalar_type());
  const at::NoGradGuard no_grad;
  const ExpertRows in = checked_rows(tokens, rows, held.weights, scalar_type(held.type));
  if (!tokens.is_cpu()) return expert_mlp_forward(tokens.contiguous(), in, released_experts(held), activation, nullptr);
  return cpu::held_experts_forward(tokens.contiguous(), in, held, activation);
}

}  // namespace sparsight
