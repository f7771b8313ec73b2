#include "sparsight/ops/packed_experts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/kernels/experts/packed_tiles.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/pack/stored_matrix.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/ops/cpu/expert_mlp.h"
#include "sparsight/ops/cpu/pack_weights.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
namespace {

// weight: [E,I,O] fp32. Returns it in the type, and the scales [E,O] of int8.
std::pair<at::Tensor, at::Tensor> rounded(const at::Tensor& weight, WeightType type) {
  if (type == WeightType::fp32) return {weight.detach().contiguous(), {}};
  const at::Tensor from = weight.detach().to(at::kCPU).contiguous();
  const int64_t experts = from.size(0), rows = from.size(1), columns = from.size(2);
  const bool scaled = type == WeightType::int8;
  const at::Tensor to = at::empty(from.sizes(), from.options().dtype(cpu::stored_type(type))),
                   scale = scaled ? at::empty({experts, columns}, from.options()) : at::Tensor();
  cpu::run_tasks(cpu::torch_threads(), experts, [&](int64_t e, const auto&) {
    cpu::StoredMatrix matrix(from.const_data_ptr<float>() + e * rows * columns, type, rows, columns,
                             cpu::Outputs::columns);
    const int64_t bytes = matrix.view().bytes();
    std::copy_n(static_cast<const char*>(matrix.data()), bytes, static_cast<char*>(to.data_ptr()) + e * bytes);
    if (scaled) std::ranges::copy(matrix.scale(), scale.data_ptr<float>() + e * columns);
  });
  return {to.to(weight.device()), scaled ? scale.to(weight.device()) : scale};
}

// [E,O], or undefined. A plain clone would keep the strides.
at::Tensor own_bias(const at::Tensor& bias) {
  return bias.defined() ? bias.detach().clone(at::MemoryFormat::Contiguous) : bias;
}

void check_part(const char* name, const at::Tensor& part, at::ScalarType type, at::IntArrayRef sizes,
                at::Device device) {
  if (!part.defined()) fail("packed experts need ", name, " of ", type, " ", sizes, ", got none");
  if (part.scalar_type() != type || part.sizes() != sizes || part.device() != device || !part.is_contiguous())
    fail("packed experts need ", name, " of ", type, " ", sizes, ", contiguous on ", device, "; got ",
         part.scalar_type(), " ", part.sizes(), " with strides ", part.strides(), " on ", part.device());
}

cpu::PackedLayout packed_layout(const PackedExperts& packed) {
  return packed.order == PackOrder::tiles ? cpu::tile_layout(packed.width, packed.hidden)
                                          : cpu::panel_layout(packed.type, packed.width, packed.hidden);
}

PackOrder best_order(const PackedExperts& packed) {
  if (!packed.weights.w1.is_cpu() || packed.weights.w1.numel() == 0) return PackOrder::plain;
  if (!cpu::kernels().has_tiles || packed.type == WeightType::int8) return PackOrder::panels;
  return packed.type == WeightType::fp32 ? PackOrder::plain : PackOrder::tiles;
}

// From plain order.
void pack(PackedExperts& packed, PackOrder order) {
  packed.order = order;
  if (order == PackOrder::plain) return;
  packed.storage = cpu::pack_weights(packed.weights.w1, packed.weights.w2, packed_layout(packed));
  packed.weights.w1 = at::Tensor();
  packed.weights.w2 = at::Tensor();
}

// The same experts in plain order.
PackedExperts plain(const PackedExperts& packed) {
  if (packed.order == PackOrder::plain) return packed;
  PackedExperts out = packed;
  const cpu::UnpackedWeights w = cpu::unpack_weights(packed.storage, packed_layout(packed));
  out.order = PackOrder::plain;
  out.weights.w1 = w.w1;
  out.weights.w2 = w.w2;
  out.storage = at::Tensor();
  return out;
}

PackedExperts in_panels(const PackedExperts& packed) {
  if (packed.order == PackOrder::panels) return packed;
  PackedExperts out = plain(packed);
  pack(out, PackOrder::panels);
  return out;
}

}  // namespace

const std::vector<std::string>& pack_order_names() {
  static const std::vector<std::string> names{"plain", "panels", "tiles"};
  return names;
}

PackedExperts pack_expert_weights(const ExpertMlpWeights& w, WeightType type) {
  if (w.w1.scalar_type() != at::kFloat) fail("experts are packed from fp32 weights, got ", w.w1.scalar_type());
  check_weights(w, at::kFloat, w.w1.device());
  const at::NoGradGuard no_grad;
  PackedExperts packed;
  packed.type = type;
  packed.experts = w.w1.size(0);
  packed.width = w.w1.size(1);
  packed.hidden = w.w1.size(2);
  packed.weights = {{}, own_bias(w.b1), {}, own_bias(w.b2)};
  std::tie(packed.weights.w1, packed.scale1) = rounded(w.w1, type);
  std::tie(packed.weights.w2, packed.scale2) = rounded(w.w2, type);
  pack(packed, best_order(packed));
  return packed;
}

void check_packed(const PackedExperts& packed) {
  const int64_t experts = packed.experts, width = packed.width, hidden = packed.hidden;
  constexpr int64_t kMax = int64_t{1} << 20;                         // keeps the sizes below from overflowing
  const int64_t minimum = packed.order == PackOrder::plain ? 0 : 1;  // empty weights are not packed
  if (experts < 1 || std::min(width, hidden) < minimum || std::max({experts, width, hidden}) > kMax)
    fail("packed experts need 1 to ", kMax, " experts and ", minimum, " to ", kMax, " for width and hidden width, got ",
         experts, ", ", width, " and ", hidden);
  if (packed.order == PackOrder::tiles && packed.type != WeightType::bf16)
    fail("experts are packed in tiles as bf16 only, got ", weight_type_names()[static_cast<size_t>(packed.type)]);
  const at::Tensor& stored = packed.order == PackOrder::plain ? packed.weights.w1 : packed.storage;
  const at::Device device = stored.defined() ? stored.device() : at::kCPU;
  const auto check = [&](const char* name, const at::Tensor& part, at::ScalarType type, at::IntArrayRef sizes) {
    check_part(name, part, type, sizes, device);
  };
  if (packed.order == PackOrder::plain) {
    check("w1", packed.weights.w1, cpu::stored_type(packed.type), {experts, width, hidden});
    check("w2", packed.weights.w2, cpu::stored_type(packed.type), {experts, hidden, width});
  } else {
    check_part("packed weights", packed.storage, at::kByte, {experts, packed_layout(packed).expert_bytes()}, at::kCPU);
  }
  if (packed.type == WeightType::int8) {
    check("scale1", packed.scale1, at::kFloat, {experts, hidden});
    check("scale2", packed.scale2, at::kFloat, {experts, width});
  }
  if (packed.weights.b1.defined()) check("b1", packed.weights.b1, at::kFloat, {experts, hidden});
  if (packed.weights.b2.defined()) check("b2", packed.weights.b2, at::kFloat, {experts, width});
}

ExpertMlpWeights unpacked_experts(const PackedExperts& packed) {
  const ExpertMlpWeights w = plain(packed).weights;
  const at::Tensor w1 = w.w1.to(at::kFloat), w2 = w.w2.to(at::kFloat);
  if (packed.type != WeightType::int8) return {w1, w.b1, w2, w.b2};
  return {w1 * packed.scale1.unsqueeze(1), w.b1, w2 * packed.scale2.unsqueeze(1), w.b2};
}

at::Tensor packed_experts(const at::Tensor& tokens, const ExpertRows& rows, const PackedExperts& packed,
                          Activation activation) {
  const at::Tensor& stored = packed.order == PackOrder::plain ? packed.weights.w1 : packed.storage;
  if (tokens.scalar_type() != at::kFloat || tokens.device() != stored.device())
    fail("experts packed on ", stored.device(), " take fp32 tokens there, got ", tokens.scalar_type(), " on ",
         tokens.device());
  const at::NoGradGuard no_grad;
  const ExpertRows in = checked_rows(tokens, rows, packed.experts, packed.width);
  const at::Tensor x = tokens.contiguous();
  if (packed.order == PackOrder::plain) return expert_mlp_forward(x, in, unpacked_experts(packed), activation, nullptr);
#if defined(__x86_64__)
  if (packed.order == PackOrder::tiles && cpu::kernels().has_tiles)
    return cpu::packed_tiles_forward(x, in, packed, packed_layout(packed), activation);
#endif
  const PackedExperts panels = in_panels(packed);
  return cpu::packed_experts_forward(x, in, panels, packed_layout(panels), activation);
}

}  // namespace sparsight
