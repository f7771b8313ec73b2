// The top-2 router of GShard: the best expert, and a second one that may be skipped.
// Lepikhin et al. 2020, "GShard", algorithm 1; the policies are those of Mesh-TensorFlow, sampling the second expert is
// Lingvo's. Letters: moe/axes.md.
#pragma once

#include <string>

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/eval_noise.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct GshardTop2Options : FixedChoiceOptions, EvalNoiseOptions {
  GshardTop2Options() : FixedChoiceOptions(2) {}
  std::string second = "random";
  std::string eval_second = "all";
  double threshold = 0.5;
  bool sample_second = false;
  void declare(OptionSet& set);
};

// The router's decision for given logits. clean: [N,E] differentiable, E >= 2. Gates are p1 / (p1 + p2) and
// p2 / (p1 + p2), whether or not the second expert is used. k: other than 2 only in evaluation; gates then are the
// probabilities over the sum of the k best, and all choices but the first are treated as second choices. Which second
// choices are used:
//   "all", "none"
//   "threshold"  those with a gate above `threshold`
//   "random"     each with probability min(1, gate / threshold), by `uniform`: N * (K-1) of U[0,1). GShard: 0.5
// A skipped choice is not an assignment.
// Differs from the paper: it takes no slot in the expert's buffer, as in GShard's code; as printed it does.
// gumbel: [N,E] samples of the Gumbel distribution that choose the second expert from the softmax without the first, or
// undefined for the second largest.
Routing route_gshard_top2(const at::Tensor& clean, const std::string& second, double threshold,
                          const at::Tensor& uniform, const at::Tensor& gumbel, int64_t k = 2);

class GshardTop2Router : public Router, public Initialized {
 public:
  // Raises UsageError for a single expert, and where eval_k is above the number of experts.
  GshardTop2Router(const GshardTop2Options& options, RouterShape shape);
  // Counts first choices, as GShard's c_e does.
  std::vector<LossWeight> default_losses() const override;
  std::vector<std::string> random_purposes() const override { return {"second", "second_expert"}; }
  bool has_noise() const override { return false; }    // none on the logits
  void initialize(const InitRandom& random) override;  // N(0, 0.02²)

  at::Tensor weight;  // [E,D]
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  // The gate of the first choice depends on the second one too, which may be skipped and then counts nowhere.
  RouterRemoval expert_removal() const override {
    return removable({{"weight"}}, options_.eval_second == "all" ? KeptRouting::gates : KeptRouting::nothing);
  }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  GshardTop2Options options_;
};

}  // namespace sparsight
