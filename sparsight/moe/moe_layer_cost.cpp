// The cost of an MoE layer for one image: the router, the experts on the rows they get, and the gates.
#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/validate_router.h"

namespace sparsight {
namespace {

// Rows of an image in the experts' buffers, on average over the images of a group: E C / group, times S.
double buffer_rows(const CapacityOptions& capacity, const RouterCost& router, int64_t experts,
                   const TokenLayout& layout, int64_t batch) {
  const int64_t given = capacity.group_unit == "images" ? capacity.group * layout.per_image : capacity.group;
  const int64_t tokens = given > 0 ? given : batch * layout.per_image;
  const double factor = capacity_factor(capacity, /*training=*/true);
  if (factor == 0 || router.per_token == 0 || tokens == 0) return router.rows;
  const int64_t rows = experts * buffer_capacity(capacity, factor, tokens, experts, router.per_token);
  return static_cast<double>(rows) * static_cast<double>(layout.per_image) / static_cast<double>(tokens);
}

}  // namespace

std::vector<PartCost> MoeLayer::cost(const TokenLayout& layout, const CostOptions& options,
                                     const Router* deciding) const {
  SPARSIGHT_CHECK(router_ || deciding);
  const int64_t tokens = layout.per_image, numbers = checked_product(tokens, outputs_);
  const RouterCost router = checked_cost(router_ ? *router_ : *deciding, path_, layout);
  ExpertUse use{expert_count_, tokens, router.rows, router.active};
  use.touched = router.touched.value_or(std::llround(std::ceil(router.rows)));
  if (options.convention.padded_experts)
    use.rows = buffer_rows(policy_.capacity, router, expert_count_, layout, options.batch);
  Cost experts = experts_->cost(use);
  if (router.combined) {  // rows times gates; a token's rows beyond the first are added
    const double sums = std::max(0.0, router.rows - static_cast<double>(tokens));
    experts = experts + on_average(elementwise_cost(outputs_), router.rows + sums);
  }
  std::vector<PartCost> parts;
  if (router_) parts.push_back({path_ + ".router", router.cost});
  parts.push_back({path_ + ".experts", experts});
  if (shared_) {
    const auto count = static_cast<double>(shared_count_);
    const ExpertUse all{shared_count_, tokens, count * static_cast<double>(tokens), count, shared_count_};
    parts.push_back({path_ + ".shared", shared_->cost(all) + on_units(elementwise_cost(numbers), shared_count_)});
  }
  constexpr int64_t kSigmoid = 4;
  if (output_sigmoid_) parts.back().cost = parts.back().cost + on_units(elementwise_cost(numbers), kSigmoid);
  return parts;
}

}  // namespace sparsight
