#include "sparsight/papers/pmoe/theory/router_training.h"

#include <algorithm>

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/papers/pmoe/theory/router_gradient.h"
#include "sparsight/papers/pmoe/theory/router_start.h"
#include "sparsight/papers/pmoe/two_layer/router_sgd.h"

namespace sparsight::pmoe {
namespace {

// [N,n]: scores of the patches by the router of the sample's class.
at::Tensor own_scores(const PatternSamples& samples, const at::Tensor& routers) {
  SPARSIGHT_CHECK(routers.dim() == 2 && routers.size(0) == 2);
  return samples.patches.matmul(routers.index_select(0, samples.labels).unsqueeze(2)).squeeze(2);
}

}  // namespace

at::Tensor train_routers(const PatternSamples& samples, const RouterTrainingOptions& options) {
  const int64_t count = samples.patches.size(0), n = samples.patches.size(1), d = samples.patches.size(2);
  if (count < 1) fail_usage("training routers needs at least 1 sample, got 0");
  const double std = options.start_std > 0 ? options.start_std : router_start_std(n, d),
               rate = options.rate > 0 ? options.rate : 1 / static_cast<double>(n);
  const at::Tensor routers =
      normal_like(torch::empty({0}, torch::kDouble), {2, d}, RandomStream(options.seed, "theory.routers")) * std;
  train_router_pair(routers[0], routers[1], -router_gradients(samples),
                    {rate, std::clamp<int64_t>(options.batch, 1, count), options.steps, [&](int64_t epoch) {
                       return RandomStream(options.seed, "theory.order", static_cast<uint64_t>(epoch));
                     }});
  return routers;
}

at::Tensor pattern_ranks(const PatternSamples& samples, const at::Tensor& routers) {
  const at::Tensor scores = own_scores(samples, routers), position = samples.position.unsqueeze(1);
  const at::Tensor pattern = scores.gather(1, position);
  const at::Tensor earlier = torch::arange(scores.size(1), torch::kLong).unsqueeze(0) < position;
  return (scores > pattern).logical_or((scores == pattern).logical_and(earlier)).sum(1);
}

double routed_share(const at::Tensor& ranks, int64_t patches) {
  return (ranks < patches).to(torch::kDouble).mean().item<double>();
}

double clear_share(const PatternSamples& samples, const at::Tensor& routers, const at::Tensor& patterns,
                   double separation) {
  const at::Tensor scores = own_scores(samples, routers);
  const at::Tensor pattern = scores.gather(1, samples.position.unsqueeze(1));
  const at::Tensor gap = samples.patches.matmul(patterns[0] - patterns[1]).abs();
  const at::Tensor must_be_below = (gap <= (1 - separation) / 2 + 1e-9).logical_and(samples.set >= 0);
  return must_be_below.logical_and(scores >= pattern).any(1).logical_not().to(torch::kDouble).mean().item<double>();
}

}  // namespace sparsight::pmoe
