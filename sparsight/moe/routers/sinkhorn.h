// Sinkhorn routing: while training, experts are chosen from the logits balanced by Sinkhorn's iteration; in evaluation
// from the logits.
// Clark et al. 2022, "Unified Scaling Laws for Routed Language Models" (S-BASE); Cuturi 2013, "Sinkhorn Distances".
// Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct SinkhornOptions : ChoiceOptions {
  double temperature = 1;
  int64_t iterations = 20;
  std::string gate = "softmax";
  SinkhornOptions() { k = 1; }
  void declare(OptionSet& set);
};

// logits: [N,E]. Returns [E]: the offset of each expert's logits for which the softmax over experts, summed over
// tokens, is N/E for each expert. Each iteration normalises first the rows to 1, then the columns to N/E. Without
// gradient.
at::Tensor sinkhorn_offsets(const at::Tensor& logits, int64_t iterations);

// The router's decision for given logits. clean: [N,E] differentiable. offsets: [E], or undefined in
// evaluation. Chosen are the k largest of clean + offsets; the gate is the softmax (over all experts) or sigmoid of
// `clean`, without the offsets.
Routing route_sinkhorn(const at::Tensor& clean, const at::Tensor& offsets, int64_t k, const std::string& gate);

class SinkhornRouter : public Router, public Initialized {
 public:
  // Raises UsageError where k is above the number of experts.
  SinkhornRouter(const SinkhornOptions& options, RouterShape shape);
  void initialize(const InitRandom& random) override;  // N(0, 0.02²)

  at::Tensor weight;  // [E,D]
  void declare(OptionSet& set) override { options_.declare(set); }
  bool mixes_images(const ForwardMode& mode) const override { return mode.choices; }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override {
    return removable({{"weight"}}, options_.gate == "sigmoid" ? KeptRouting::gates : KeptRouting::choices);
  }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  SinkhornOptions options_;
};

}  // namespace sparsight
