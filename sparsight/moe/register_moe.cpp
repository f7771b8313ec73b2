#include "sparsight/moe/register_moe.h"

#include "sparsight/moe/experts/mlp_experts.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/routers/softmax_topk.h"

namespace sparsight {
namespace {

// The usual factory: Impl(options, context).
template <class Impl>
constexpr auto construct =
    [](const auto& options, const auto&... context) { return std::make_shared<Impl>(options, context...); };

}  // namespace

Registry<std::shared_ptr<Router>, RouterShape>& routers() {
  static auto registry = [] {
    Registry<std::shared_ptr<Router>, RouterShape> r("router");
    r.add<SoftmaxTopKOptions>("softmax_topk", "softmax over all experts, then top-k (V-MoE)",
                              construct<SoftmaxTopKRouter>);
    return r;
  }();
  return registry;
}

Registry<std::shared_ptr<Experts>, ExpertShape>& expert_kinds() {
  static auto registry = [] {
    Registry<std::shared_ptr<Experts>, ExpertShape> r("kind of expert");
    r.add<MlpExpertsOptions>("mlp", "two linear maps with an activation between them", construct<MlpExperts>);
    return r;
  }();
  return registry;
}

const std::vector<RoutingLoss>& routing_losses() {
  static const std::vector<RoutingLoss> losses{
      {"importance", "the importance loss: squared variation of summed router probabilities", 0.005, importance_loss},
      {"load", "the load loss: squared variation of smooth token counts (only with router noise)", 0.005, load_loss},
  };
  return losses;
}

}  // namespace sparsight
