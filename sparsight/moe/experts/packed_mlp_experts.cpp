#include "sparsight/moe/experts/packed_mlp_experts.h"

#include "sparsight/core/error.h"
#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/moe/experts/expert_parameters.h"

namespace sparsight {
namespace {

// Packing in plain order may return its input tensors.
PackedExperts own_weights(const ExpertMlpWeights& from, WeightType type) {
  PackedExperts packed = pack_expert_weights(from, type);
  for (const auto& [own, other] : {std::pair(&packed.weights.w1, &from.w1), std::pair(&packed.weights.w2, &from.w2)})
    if (own->defined() && own->is_alias_of(*other)) *own = own->clone();
  return packed;
}

}  // namespace

PackedMlpExperts::PackedMlpExperts(const ExpertMlpWeights& weights, WeightType type, Activation activation,
                                   bool dropout)
    : weights_(own_weights(weights, type)), activation_(activation), dropout_(dropout) {}

at::Tensor PackedMlpExperts::run(const at::Tensor& tokens, const ExpertRows& rows, bool drops) const {
  if (drops || (torch::GradMode::is_enabled() && tokens.requires_grad()))
    fail(
        "these experts are packed for inference, without gradients or dropout; use the model that was not packed for "
        "training");
  return packed_experts(tokens.to(at::kFloat), rows, weights_, activation_).to(expert_type(tokens));
}

at::Tensor PackedMlpExperts::compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) {
  return run(rows, rows_in_place(rows, offsets), is_stochastic(context.mode));
}

at::Tensor PackedMlpExperts::apply_routing(const at::Tensor& tokens, const Routing& routing,
                                           const ExpertContext& context) {
  return run(tokens, {routing_map(routing), routing.offsets, row_gates(routing)}, is_stochastic(context.mode));
}

}  // namespace sparsight
