#include "sparsight/moe/routers/soft_moe.h"

#include <cmath>
#include <limits>

#include "sparsight/core/error.h"
#include "sparsight/engine/routers/soft.h"
#include "sparsight/moe/routers/router_logits.h"

namespace sparsight {
namespace {

// Rows of norm 1; a row of zeros stays 0, with finite gradients.
at::Tensor unit_rows(const at::Tensor& rows) {
  constexpr double kEpsilon = 1e-12;
  return rows * (rows.square().sum(1, /*keepdim=*/true) + kEpsilon).rsqrt();
}

}  // namespace

void SoftMoeOptions::declare(OptionSet& set) {
  set.integer("slots", &slots, {1, 65536}, "slots per expert for each image");
  set.flag("normalize", &normalize, "use cosines of tokens and slots times a learned scale instead of inner products");
}

SoftRouting soft_routing(const at::Tensor& logits, const at::Tensor& valid, int64_t experts) {
  SPARSIGHT_CHECK(logits.dim() == 3 && logits.size(2) % experts == 0);
  SoftRouting routing;
  routing.experts = experts;
  routing.slots = logits.size(2) / experts;
  routing.valid = valid;
  routing.logits = logits;
  routing.combine = at::softmax(logits, 2);
  if (!valid.defined()) {
    routing.dispatch = at::softmax(logits, 1);
    return routing;
  }
  const at::Tensor padding = valid.reshape({logits.size(0), logits.size(1), 1}).logical_not();
  // Not -inf: an image that is all padding would become NaN.
  const at::Tensor shut = logits.masked_fill(padding, std::numeric_limits<float>::lowest());
  routing.dispatch = at::softmax(shut, 1).masked_fill(padding, 0);
  routing.combine = routing.combine.masked_fill(padding, 0);
  return routing;
}

SoftMoeRouter::SoftMoeRouter(const SoftMoeOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts * options.slots, shape.width}))),
      options_(options),
      experts_(shape.experts) {
  if (options_.normalize) scale = register_parameter("scale", torch::ones({}));
}

SoftRouting SoftMoeRouter::mix(const RouterInput& input) {
  const at::Tensor& valid = input.context.valid;
  at::Tensor tokens = input.tokens;
  if (valid.defined()) tokens = tokens.masked_fill(valid.logical_not().unsqueeze(1), 0);
  at::Tensor logits;  // [N,P]
  if (options_.normalize) {
    const at::Tensor x = tokens.to(weight.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat);
    // One factor per slot, for the same reason as in cosine.cpp.
    logits = router_logits(unit_rows(x), scale.expand({weight.size(0), 1}) * unit_rows(weight));
  } else {
    logits = router_logits(tokens, weight);
  }
  SoftRouting routing =
      soft_routing(logits.view({input.layout.images, input.layout.per_image, weight.size(0)}), valid, experts_);
  routing.layer = input.layer;
  routing.layout = input.layout;
  return routing;
}

void SoftMoeRouter::initialize(const InitRandom& random) {
  init_normal(weight, 1 / std::sqrt(static_cast<double>(weight.size(1))), random.stream("weight"));
  const torch::NoGradGuard no_grad;
  if (scale.defined()) scale.fill_(1);
}

std::unique_ptr<engine::Router> SoftMoeRouter::compile() const {
  const torch::NoGradGuard no_grad;
  const at::Tensor map = options_.normalize ? scale.expand({weight.size(0), 1}) * unit_rows(weight) : weight;
  return std::make_unique<engine::SoftRouter>(linear_map(map), experts_, options_.normalize);
}

RouterCost SoftMoeRouter::cost(const TokenLayout& layout) const {
  const int64_t slots = weight.size(0), width = weight.size(1), tokens = layout.per_image;
  // Three products of tokens and slots: logits, means of tokens, means of the experts' outputs; two softmaxes.
  Cost cost = parameters_cost(slots * width);
  cost.multiply_adds = checked_product(3 * tokens, slots * width);
  cost.elementwise = checked_product(2 * kSoftmaxOperations * tokens, slots);
  if (options_.normalize) cost = cost + parameters_cost(1) + elementwise_cost(3 * tokens * width);
  return {cost,
          static_cast<double>(slots),
          static_cast<double>(experts_),
          experts_,
          0,
          /*varying=*/false,
          /*combined=*/false};
}

}  // namespace sparsight
