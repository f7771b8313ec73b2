#include "sparsight/moe/register_moe.h"

#include "sparsight/core/config.h"
#include "sparsight/moe/experts/conv_experts.h"
#include "sparsight/moe/experts/linear_experts.h"
#include "sparsight/moe/experts/mlp_experts.h"
#include "sparsight/moe/experts/norm_conv_experts.h"
#include "sparsight/moe/experts/swiglu_experts.h"
#include "sparsight/moe/losses/entropy.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/losses/router_z.h"
#include "sparsight/moe/losses/separation.h"
#include "sparsight/moe/losses/sequence_balance.h"
#include "sparsight/moe/losses/superclass.h"
#include "sparsight/moe/losses/switch_loss.h"
#include "sparsight/moe/losses/threshold.h"
#include "sparsight/moe/losses/vmoe_importance.h"
#include "sparsight/moe/losses/vmoe_load.h"
#include "sparsight/moe/moe_spec.h"
#include "sparsight/moe/routers/balanced_batchwise.h"
#include "sparsight/moe/routers/balanced_hierarchical.h"
#include "sparsight/moe/routers/base.h"
#include "sparsight/moe/routers/cosine.h"
#include "sparsight/moe/routers/dense_softmax.h"
#include "sparsight/moe/routers/expert_choice.h"
#include "sparsight/moe/routers/gshard_top2.h"
#include "sparsight/moe/routers/hash.h"
#include "sparsight/moe/routers/hierarchical.h"
#include "sparsight/moe/routers/noisy_topk.h"
#include "sparsight/moe/routers/patch_choice.h"
#include "sparsight/moe/routers/per_image.h"
#include "sparsight/moe/routers/random.h"
#include "sparsight/moe/routers/relu.h"
#include "sparsight/moe/routers/round_robin.h"
#include "sparsight/moe/routers/sigmoid_bias.h"
#include "sparsight/moe/routers/sinkhorn.h"
#include "sparsight/moe/routers/soft_moe.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "sparsight/moe/routers/switch_top1.h"
#include "sparsight/moe/routers/top_p.h"

namespace sparsight {
namespace {

// The usual factory: Impl(options, context).
template <class Impl>
constexpr auto construct =
    [](const auto& options, const auto&... context) { return std::make_shared<Impl>(options, context...); };

std::vector<RoutingLoss> library_losses() {
  using R = const Routing&;
  using V = const LossVariants&;
  return {
      {"importance", "the importance loss (Shazeer): squared variation of the sums of chosen gates",
       [](R r, V v) { return importance_loss(r, v.unbiased_variance); }},
      {"load", "the load loss (Shazeer): squared variation of smooth token counts; needs router noise",
       [](R r, V v) { return load_loss(r, v.threshold_gradient, v.unbiased_variance); }},
      {"vmoe_importance", "the importance loss of V-MoE: squared variation of summed dense router probabilities",
       [](R r, V v) { return vmoe_importance_loss(r, v.unbiased_variance); }},
      {"vmoe_load", "the load loss of V-MoE: squared variation of smooth token counts; needs router noise",
       [](R r, V v) { return vmoe_load_loss(r, v.unbiased_variance, v.vmoe_load_of == "scores"); }},
      {"switch", "the load-balancing loss of GShard and Switch: shares of tokens times mean probabilities",
       [](R r, V v) { return switch_loss(r, v.switch_counts, v.switch_form); }},
      {"router_z", "the router z-loss (ST-MoE): squared logsumexp of the logits",
       [](R r, V) { return router_z_loss(r); }},
      {"threshold", "the threshold loss of strictly balanced gating",
       [](R r, V v) { return threshold_loss(r, v.threshold_score_gradient); }},
      {"sequence_balance", "the balance loss of DeepSeek-V3 within each image",
       [](R r, V) { return sequence_balance_loss(r); }},
      {"superclass", "the guided loss of Mobile V-MoE: cross-entropy of the router against super-classes",
       [](R r, V) { return superclass_loss(r); }, /*needs_target=*/true},
      {"separation",
       "the loss of pMoE's routers alone: each expert's scores of its class against its pair's other class",
       [](R r, V) { return separation_loss(r); }, /*needs_target=*/true},
      {"entropy", "the mean entropy of a token's router probabilities", [](R r, V) { return entropy_loss(r); }},
      {"marginal_entropy", "the shortfall of the entropy of the mean router probabilities",
       [](R r, V) { return marginal_entropy_loss(r); }},
      {"mutual_information", "the shortfall of the mutual information of tokens and experts",
       [](R r, V) { return mutual_information_loss(r); }},
  };
}

// What add_routing_loss() adds to.
std::vector<RoutingLoss>& loss_list() {
  static std::vector<RoutingLoss> losses = library_losses();
  return losses;
}

}  // namespace

Registry<std::shared_ptr<Router>, RouterShape>& routers() {
  static auto registry = [] {
    Registry<std::shared_ptr<Router>, RouterShape> r("router");
    r.share<RouterScopeOptions>();
    r.add<SoftmaxTopKOptions>("softmax_topk", "softmax over all experts, then top-k (V-MoE)",
                              construct<SoftmaxTopKRouter>);
    r.add<NoisyTopKOptions>("noisy_topk", "noise of learned size, top-k, then softmax over the chosen (Shazeer et al.)",
                            construct<NoisyTopKRouter>);
    r.add<GshardTop2Options>("gshard_top2", "the two best experts, the second one at random (GShard)",
                             construct<GshardTop2Router>);
    r.add<SwitchTop1Options>("switch_top1", "the best expert, with jitter on the tokens (Switch)",
                             construct<SwitchTop1Router>);
    r.add<CosineOptions>("cosine", "cosines of projected tokens and expert directions (GMoE)", construct<CosineRouter>);
    r.add<SigmoidBiasOptions>("sigmoid_bias", "sigmoid scores, balanced by a bias instead of a loss (DeepSeek-V3)",
                              construct<SigmoidBiasRouter>);
    r.add<DenseSoftmaxOptions>("dense_softmax", "every expert, weighted by the softmax", construct<DenseSoftmaxRouter>);
    r.add<HashOptions>("hash", "a fixed hash of the token's id or place (hash layers)", construct<HashRouter>);
    r.add<RandomOptions>("random", "experts drawn at random, anew for each step", construct<RandomRouter>);
    r.add<RoundRobinOptions>("round_robin", "experts in turn, token after token", construct<RoundRobinRouter>);
    r.add<ExpertChoiceOptions>("expert_choice", "each expert takes its best tokens of the batch or of each image",
                               construct<ExpertChoiceRouter>);
    r.add<PatchChoiceOptions>("patch_choice", "each expert takes its best patches of each image (pMoE)",
                              construct<PatchChoiceRouter>);
    r.add<BalancedBatchwiseOptions>("balanced_batchwise",
                                    "equally many tokens for each expert, learned thresholds in evaluation (Shazeer "
                                    "et al.)",
                                    construct<BalancedBatchwiseRouter>);
    r.add<HierarchicalOptions>("hierarchical", "noisy top-k of groups, then of their experts (Shazeer et al.)",
                               construct<HierarchicalRouter>);
    r.add<BalancedHierarchicalOptions>("balanced_hierarchical",
                                       "equally many tokens for each group, then for each of its experts (Shazeer et "
                                       "al.)",
                                       construct<BalancedHierarchicalRouter>);
    r.add<PerImageOptions>("per_image", "one choice for all tokens of an image (Mobile V-MoE)",
                           construct<PerImageRouter>);
    r.add<BaseOptions>("base", "the balanced linear assignment while training (BASE layers)", construct<BaseRouter>);
    r.add<SinkhornOptions>("sinkhorn", "logits balanced by Sinkhorn's iteration while training (S-BASE)",
                           construct<SinkhornRouter>);
    r.add<SoftMoeOptions>("soft_moe", "expert slots take weighted means of all tokens (Soft MoE)",
                          construct<SoftMoeRouter>);
    r.add<ReluOptions>("relu", "every expert with a positive logit, their number held by an L1 loss (ReMoE)",
                       construct<ReluRouter>);
    r.add<TopPOptions>("top_p", "as many experts as it takes for their probabilities to sum to p (Huang et al.)",
                       construct<TopPRouter>);
    return r;
  }();
  return registry;
}

Registry<std::shared_ptr<Experts>, ExpertShape>& expert_kinds() {
  static auto registry = [] {
    Registry<std::shared_ptr<Experts>, ExpertShape> r("kind of expert");
    r.add<MlpExpertsOptions>("mlp", "linear maps with an activation between them: one hidden layer, or more",
                             construct<MlpExperts>);
    r.add<SwigluExpertsOptions>("swiglu", "gated perceptrons: (silu(x W) * x V) U", construct<SwigluExperts>);
    r.add<LinearExpertsOptions>("linear", "one linear map", construct<LinearExperts>);
    r.add<ConvExpertsOptions>("conv", "small CNNs on patches: convolution, activation, pooling, linear map",
                              construct<ConvExperts>);
    r.add<NormConvExpertsOptions>(
        "norm_conv", "batch norm, ReLU and convolution on patches, each expert its own channels (WRN-pMoE)",
        construct<NormConvExperts>);
    return r;
  }();
  return registry;
}

const std::vector<RoutingLoss>& routing_losses() { return loss_list(); }

void add_routing_loss(RoutingLoss loss) {
  OptionSet taken;
  LossOptions options;
  options.declare(taken);
  if (taken.find(loss.name))
    fail_usage("[losses] has a setting \"", loss.name, "\" already; register the loss under another name");
  loss_list().push_back(std::move(loss));
}

std::shared_ptr<Router> make_router(const Json& resolved, const RouterShape& shape) {
  auto router = make_component(routers(), resolved, "router", shape);
  router->set_registered(resolved.at("router").at("name").get<std::string>(), shape);
  return router;
}

}  // namespace sparsight
