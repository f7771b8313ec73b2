#include "sparsight/moe/experts/mlp_experts.h"

#include <ATen/autocast_mode.h>

#include "sparsight/moe/dispatch.h"

namespace sparsight {
namespace {

// What a linear layer would compute in: the autocast type where autocast is on, else the type of the rows.
at::ScalarType expert_type(const at::Tensor& rows) {
  const auto device = rows.device().type();
  const bool lowered = rows.scalar_type() != torch::kDouble && at::autocast::is_autocast_enabled(device);
  return lowered ? at::autocast::get_autocast_dtype(device) : rows.scalar_type();
}

}  // namespace

MlpExperts::MlpExperts(const MlpExpertsOptions& options, const ExpertShape& shape)
    : weights{register_parameter("w1", torch::zeros({shape.experts, shape.width, shape.hidden})),
              register_parameter("b1", torch::zeros({shape.experts, shape.hidden})),
              register_parameter("w2", torch::zeros({shape.experts, shape.hidden, shape.width})),
              register_parameter("b2", torch::zeros({shape.experts, shape.width}))},
      activation_(shape.activation),
      recompute_(options.recompute) {}

MoeMlpWeights MlpExperts::weights_as(at::ScalarType type) const {
  return {weights.w1.to(type), weights.b1.to(type), weights.w2.to(type), weights.b2.to(type)};
}

at::Tensor MlpExperts::forward(const at::Tensor& rows, const at::Tensor& offsets) {
  const auto type = expert_type(rows);
  return moe_mlp(rows.to(type), offsets, weights_as(type), activation_);
}

at::Tensor MlpExperts::apply_routing(const at::Tensor& tokens, const Routing& routing) {
  const auto type = expert_type(tokens);
  return expert_mlp(tokens.to(type), {routing_map(routing), routing.offsets, row_gates(routing)}, weights_as(type),
                    {activation_, recompute_});
}

void MlpExperts::initialize(const InitRandom& random) {
  init_normal(weights.w1, kVitStd, random.stream("w1"));
  init_normal(weights.w2, kVitStd, random.stream("w2"));
  const torch::NoGradGuard no_grad;
  weights.b1.zero_();
  weights.b2.zero_();
}

}  // namespace sparsight
