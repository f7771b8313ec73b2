// Random routing: k experts sampled for each token and step (Zuo et al. 2022, "Taming Sparsely Activated Transformer
// with Stochastic Experts"). A baseline for learned routing. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"

namespace sparsight {

struct RandomOptions : ChoiceOptions {};

// A token's experts are a function of (seed, step, layer, token number): reproducible, in evaluation too.
class RandomRouter : public Router {
 public:
  // Raises UsageError where k is above the number of experts.
  RandomRouter(const RandomOptions& options, RouterShape shape);
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override { return {"chooses at random: no expert is used less than others"}; }
  RouterCost cost(const TokenLayout& layout) const override;
  std::vector<std::string> random_purposes() const override { return {"draw"}; }
  bool has_noise() const override { return false; }  // none on the logits

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  RandomOptions options_;
  int64_t experts_;
};

}  // namespace sparsight
