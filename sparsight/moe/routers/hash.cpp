#include "sparsight/moe/routers/hash.h"

#include <algorithm>
#include <limits>

#include "sparsight/core/error.h"
#include "sparsight/engine/routers/fixed.h"
#include "sparsight/moe/routers/fixed_choice.h"

namespace sparsight {

void HashOptions::declare(OptionSet& set) {
  ChoiceOptions::declare(set);
  set.integer("seed", &seed, {0, std::numeric_limits<int64_t>::max()}, "seed of the hash function");
}

at::Tensor hash_experts(const at::Tensor& id, int64_t experts, int64_t k, uint64_t seed) {
  const at::Tensor ids = id.to(torch::kCPU, torch::kLong).contiguous();
  const int64_t tokens = ids.numel();
  at::Tensor chosen = torch::empty({tokens, k}, torch::kLong);
  const int64_t* in = ids.const_data_ptr<int64_t>();
  int64_t* out = chosen.data_ptr<int64_t>();
  for (int64_t token = 0; token < tokens; ++token) engine::hash_experts(seed, in[token], experts, k, out + token * k);
  return chosen;
}

HashRouter::HashRouter(const HashOptions& options, RouterShape shape) : options_(options), experts_(shape.experts) {
  options_.check(experts_);
}

Routing HashRouter::choose(const RouterInput& input) {
  at::Tensor id = input.context.token_id;
  if (!id.defined())
    id = torch::arange(input.tokens.size(0), torch::kLong).remainder(std::max<int64_t>(1, input.layout.per_image));
  SPARSIGHT_CHECK(id.dim() == 1 && id.size(0) == input.tokens.size(0));
  const at::Tensor experts =
      hash_experts(id, experts_, options_.of(input.mode.choices), static_cast<uint64_t>(options_.seed));
  return route_fixed(experts, experts_, input.tokens);
}

std::unique_ptr<engine::Router> HashRouter::compile() const {
  return std::make_unique<engine::HashRouter>(experts_, options_.of(false), static_cast<uint64_t>(options_.seed));
}

RouterCost HashRouter::cost(const TokenLayout& layout) const { return token_choice_cost({}, options_.k, layout); }

}  // namespace sparsight
