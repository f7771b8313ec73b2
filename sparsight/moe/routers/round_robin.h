// Round-robin routing: token j goes to experts j k, j k + 1, ... (modulo E). Perfectly balanced and independent of the
// input: a baseline for the effect of balance alone. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"

namespace sparsight {

struct RoundRobinOptions : ChoiceOptions {};

// Tokens are numbered over the whole batch (RoutingContext::image).
class RoundRobinRouter : public Router {
 public:
  // Raises UsageError where k is above the number of experts.
  RoundRobinRouter(const RoundRobinOptions& options, RouterShape shape);
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override {
    return {"takes the experts in turn: no expert is used less than others"};
  }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  RoundRobinOptions options_;
  int64_t experts_;
};

}  // namespace sparsight
