#include "sparsight/ops/held_experts.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/ops/cpu/expert_mlp.h"
#include "sparsight/ops/cpu/held_tiles.h"
#include "sparsight/ops/cpu/isa.h"
#include "sparsight/ops/cpu/pack_held.h"

namespace sparsight {
namespace {

// The largest |weight| of each output channel / 127; 1 where all are 0. [E,I,O] -> [E,O]
at::Tensor channel_scale(const at::Tensor& weight) {
  if (weight.size(1) == 0) return at::ones({weight.size(0), weight.size(2)}, weight.options());
  const at::Tensor scale = weight.abs().amax(1) / 127;
  return at::where(scale == 0, at::ones_like(scale), scale).contiguous();
}

// Where the scale is not finite 0 is stored, so that it makes NaN of its channel.
at::Tensor to_int8(const at::Tensor& weight, const at::Tensor& scale) {
  return (weight / scale.unsqueeze(1)).round().clamp(-127, 127).nan_to_num().to(at::kChar).contiguous();
}

// [E,O], or undefined. A plain clone would keep the strides.
at::Tensor own_bias(const at::Tensor& bias) {
  return bias.defined() ? bias.detach().clone(at::MemoryFormat::Contiguous) : bias;
}

void check_part(const char* name, const at::Tensor& part, at::ScalarType type, at::IntArrayRef sizes,
                at::Device device) {
  if (!part.defined()) fail("held experts need ", name, " of ", type, " ", sizes, ", got none");
  if (part.scalar_type() != type || part.sizes() != sizes || part.device() != device || !part.is_contiguous())
    fail("held experts need ", name, " of ", type, " ", sizes, ", contiguous on ", device, "; got ", part.scalar_type(),
         " ", part.sizes(), " with strides ", part.strides(), " on ", part.device());
}

cpu::HeldLayout layout_of(const HeldExperts& held) {
  return (held.order == HeldOrder::tiles ? cpu::tile_layout : cpu::panel_layout)(held.type, held.width, held.hidden);
}

HeldOrder best_order(const HeldExperts& held) {
  if (!held.weights.w1.is_cpu() || held.weights.w1.numel() == 0) return HeldOrder::plain;
  if (active_isa() != Isa::amx) return HeldOrder::panels;
  if (held.type == WeightType::fp32) return HeldOrder::plain;
  return cpu::fits_tiles(held.width) ? HeldOrder::tiles : HeldOrder::panels;
}

// From plain order.
void pack(HeldExperts& held, HeldOrder order) {
  held.order = order;
  if (order == HeldOrder::plain) return;
  held.packed = cpu::pack_held(held.weights.w1, held.weights.w2, layout_of(held));
  held.weights.w1 = at::Tensor();
  held.weights.w2 = at::Tensor();
}

// The same experts in plain order.
HeldExperts plain(const HeldExperts& held) {
  if (held.order == HeldOrder::plain) return held;
  HeldExperts out = held;
  const cpu::UnpackedWeights w = cpu::unpack_held(held.packed, layout_of(held));
  out.order = HeldOrder::plain;
  out.weights.w1 = w.w1;
  out.weights.w2 = w.w2;
  out.packed = at::Tensor();
  return out;
}

HeldExperts in_panels(const HeldExperts& held) {
  if (held.order == HeldOrder::panels) return held;
  HeldExperts out = plain(held);
  pack(out, HeldOrder::panels);
  return out;
}

}  // namespace

const std::vector<std::string>& weight_type_names() {
  static const std::vector<std::string> names{"fp32", "bf16", "int8"};  // in the order of the enumeration
  return names;
}

const std::vector<std::string>& held_order_names() {
  static const std::vector<std::string> names{"plain", "panels", "tiles"};
  return names;
}

WeightType parse_weight_type(const std::string& name) {
  return static_cast<WeightType>(position_of(name, weight_type_names(), "type to hold experts in"));
}

HeldExperts hold_experts(const ExpertMlpWeights& w, WeightType type) {
  if (w.w1.scalar_type() != at::kFloat) fail("experts are held from fp32 weights, got ", w.w1.scalar_type());
  check_weights(w, at::kFloat, w.w1.device());
  const at::NoGradGuard no_grad;
  HeldExperts held;
  held.type = type;
  held.experts = w.w1.size(0);
  held.width = w.w1.size(1);
  held.hidden = w.w1.size(2);
  held.weights = {{}, own_bias(w.b1), {}, own_bias(w.b2)};
  if (type == WeightType::int8) {
    held.scale1 = channel_scale(w.w1);
    held.scale2 = channel_scale(w.w2);
    held.weights.w1 = to_int8(w.w1, held.scale1);
    held.weights.w2 = to_int8(w.w2, held.scale2);
  } else {
    held.weights.w1 = w.w1.detach().to(cpu::stored_type(type)).contiguous();
    held.weights.w2 = w.w2.detach().to(cpu::stored_type(type)).contiguous();
  }
  pack(held, best_order(held));
  return held;
}

void check_held(const HeldExperts& held) {
  const int64_t experts = held.experts, width = held.width, hidden = held.hidden;
  constexpr int64_t kMost = int64_t{1} << 20;                    // keeps the sizes below from overflowing
  const int64_t least = held.order == HeldOrder::plain ? 0 : 1;  // of nothing nothing is packed
  if (experts < 1 || std::min(width, hidden) < least || std::max({experts, width, hidden}) > kMost)
    fail("held experts need 1 to ", kMost, " experts and ", least, " to ", kMost, " for width and hidden width, got ",
         experts, ", ", width, " and ", hidden);
  if (held.order == HeldOrder::tiles && (held.type == WeightType::fp32 || !cpu::fits_tiles(width)))
    fail("experts of width ", width, " are not held as ", weight_type_names()[static_cast<size_t>(held.type)],
         " in tiles");
  const at::Tensor& stored = held.order == HeldOrder::plain ? held.weights.w1 : held.packed;
  const at::Device device = stored.defined() ? stored.device() : at::kCPU;
  const auto check = [&](const char* name, const at::Tensor& part, at::ScalarType type, at::IntArrayRef sizes) {
    check_part(name, part, type, sizes, device);
  };
  if (held.order == HeldOrder::plain) {
    check("w1", held.weights.w1, cpu::stored_type(held.type), {experts, width, hidden});
    check("w2", held.weights.w2, cpu::stored_type(held.type), {experts, hidden, width});
  } else {
    check_part("packed weights", held.packed, at::kByte, {experts, layout_of(held).expert_bytes()}, at::kCPU);
  }
  if (held.type == WeightType::int8) {
    check("scale1", held.scale1, at::kFloat, {experts, hidden});
    check("scale2", held.scale2, at::kFloat, {experts, width});
  }
  if (held.weights.b1.defined()) check("b1", held.weights.b1, at::kFloat, {experts, hidden});
  if (held.weights.b2.defined()) check("b2", held.weights.b2, at::kFloat, {experts, width});
}

ExpertMlpWeights released_experts(const HeldExperts& held) {
  const ExpertMlpWeights w = plain(held).weights;
  const at::Tensor w1 = w.w1.to(at::kFloat), w2 = w.w2.to(at::kFloat);
  if (held.type != WeightType::int8) return {w1, w.b1, w2, w.b2};
  return {w1 * held.scale1.unsqueeze(1), w.b1, w2 * held.scale2.unsqueeze(1), w.b2};
}

at::Tensor held_experts(const at::Tensor& tokens, const ExpertRows& rows, const HeldExperts& held,
                        Activation activation) {
  const at::Tensor& stored = held.order == HeldOrder::plain ? held.weights.w1 : held.packed;
  if (tokens.scalar_type() != at::kFloat || tokens.device() != stored.device())
    fail("experts held on ", stored.device(), " take fp32 tokens there, got ", tokens.scalar_type(), " on ",
         tokens.device());
  const at::NoGradGuard no_grad;
  const ExpertRows in = checked_rows(tokens, rows, held.experts, held.width);
  const at::Tensor x = tokens.contiguous();
  if (held.order == HeldOrder::plain) return expert_mlp_forward(x, in, released_experts(held), activation, nullptr);
#if defined(__x86_64__)
  if (held.order == HeldOrder::tiles && active_isa() == Isa::amx)
    return cpu::held_tiles_forward(x, in, held, layout_of(held), activation);
#endif
  const HeldExperts panels = in_panels(held);
  return cpu::held_experts_forward(x, in, panels, layout_of(panels), activation);
}

}  // namespace sparsight
