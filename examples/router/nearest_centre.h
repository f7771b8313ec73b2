// A router that sends each token to the experts with the nearest centres: every expert has a learned point in token
// space, and the gates are a softmax over -distance² / temperature of the k nearest.
#pragma once

#include <sparsight/core/options.h>
#include <sparsight/moe/router.h>
#include <sparsight/nn/init.h>

// Every option is declared once: this gives its TOML key, --set router.k=1, the range check and the saved copy.
struct NearestCentreOptions {
  int64_t k = 2;
  double temperature = 1;
  double commitment = 0.001;
  void declare(sparsight::OptionSet& set);
};

class NearestCentreRouter : public sparsight::Router, public sparsight::Initialized {
 public:
  NearestCentreRouter(const NearestCentreOptions& options, sparsight::RouterShape shape);
  void initialize(const sparsight::InitRandom& random) override;  // centres N(0, 1)

  // The losses it is trained with unless [losses] overrides them.
  std::vector<sparsight::LossWeight> default_losses() const override { return {{"importance", 0.01}}; }
  // A loss that only this router has: the mean squared distance of tokens from their chosen centres.
  std::vector<sparsight::RouterLoss> own_losses() const override;
  // Numbers for metrics.jsonl, eval and `moe`: "squared_distance", the same mean.
  std::vector<sparsight::RoutingMetric> metrics(const sparsight::Routing& routing) const override;

 protected:
  sparsight::Routing choose(const sparsight::RouterInput& input) override;

 private:
  at::Tensor mean_squared_distance(const sparsight::Routing& routing) const;  // []

  at::Tensor centres_;  // [E,D]
  NearestCentreOptions options_;
};
