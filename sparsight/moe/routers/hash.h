// Hash routing: a token's experts are a fixed hash of its id; nothing is learned.
// Roller et al. 2021, "Hash Layers For Large Sparse Models". Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"

namespace sparsight {

struct HashOptions : ChoiceOptions {
  int64_t seed = 0;
  HashOptions() { k = 1; }
  void declare(OptionSet& set);
};

// id: [N] int64. Returns [N,K]: k distinct experts of each id, each equally likely over ids.
at::Tensor hash_experts(const at::Tensor& id, int64_t experts, int64_t k, uint64_t seed);

// The id is RoutingContext::token_id, or, if undefined, the token's position in its image.
class HashRouter : public Router {
 public:
  // Raises UsageError where k is above the number of experts.
  HashRouter(const HashOptions& options, RouterShape shape);
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override {
    return {"hashes token ids to the number of experts, and would send every token elsewhere"};
  }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  HashOptions options_;
  int64_t experts_;
};

}  // namespace sparsight
