#include "sparsight/moe/register_moe.h"

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/moe/experts/conv_experts.h"
#include "sparsight/moe/experts/linear_experts.h"
#include "sparsight/moe/experts/mlp_experts.h"
#include "sparsight/moe/experts/norm_conv_experts.h"
#include "sparsight/moe/experts/swiglu_experts.h"
#include "sparsight/moe/losses/balance.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/losses/logits.h"
#include "sparsight/moe/losses/targets.h"
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
      {"importance",
       "the importance loss (Shazeer et al.): squared CV of the experts' summed gates over the batch; 0 when balanced",
       [](R r, V v) { return importance_loss(r, v.unbiased_variance); }},
      {"load",
       "the load loss (Shazeer et al.): squared CV of smooth token counts, with thresholds that exclude the expert "
       "itself; "
       "0 when balanced; needs router noise",
       [](R r, V v) { return load_loss(r, v.threshold_gradient, v.unbiased_variance); }, false, /*needs_noise=*/true},
      {"vmoe_importance",
       "the importance loss of V-MoE: squared CV of summed router probabilities of all experts; 0 when balanced",
       [](R r, V v) { return vmoe_importance_loss(r, v.unbiased_variance); }},
      {"vmoe_load",
       "the load loss of V-MoE: squared CV of smooth token counts, one threshold per token; 0 when balanced; needs "
       "router noise",
       [](R r, V v) { return vmoe_load_loss(r, v.unbiased_variance, v.vmoe_load_of == "scores"); }, false,
       /*needs_noise=*/true},
      {"switch",
       "the load balancing loss of GShard and Switch: sum over experts of token fraction times mean probability; 1 "
       "when balanced, k with switch_counts = sum",
       [](R r, V v) { return switch_loss(r, v.switch_counts, v.switch_form); }},
      {"router_z", "the router z-loss (ST-MoE): mean squared logsumexp of the logits",
       [](R r, V) { return router_z_loss(r); }},
      {"threshold",
       "the threshold loss of strictly balanced gating (Shazeer et al.): distance between the learned thresholds and "
       "the batchwise choice; 0 if they agree",
       [](R r, V v) { return threshold_loss(r, v.threshold_score_gradient); }},
      {"sequence_balance",
       "the sequence-wise balance loss of DeepSeek-V3: as switch, within each image; 1 when balanced",
       [](R r, V) { return sequence_balance_loss(r); }},
      {"superclass",
       "the guided loss of Mobile V-MoE: cross-entropy of the router against super-classes, averaged over the routers",
       [](R r, V) { return superclass_loss(r); }, /*needs_target=*/true, /*needs_noise=*/false, OverRouters::mean},
      {"separation",
       "the loss of separately trained pMoE routers: each expert's scores for its class against the other class of its "
       "pair",
       [](R r, V) { return separation_loss(r); }, /*needs_target=*/true},
      {"entropy", "the mean entropy of a token's router probabilities: 0 if the router is certain, ln E if uniform",
       [](R r, V) { return entropy_loss(r); }},
      {"marginal_entropy",
       "ln E minus the entropy of the mean router probabilities: 0 when balanced, ln E with all tokens on one expert",
       [](R r, V) { return marginal_entropy_loss(r); }},
      {"mutual_information",
       "ln E minus the mutual information of tokens and experts: the sum of entropy and marginal_entropy",
       [](R r, V) { return mutual_information_loss(r); }},
  };
}

// Extended by add_routing_loss().
std::vector<RoutingLoss>& loss_list() {
  static std::vector<RoutingLoss> losses = library_losses();
  return losses;
}

using RouterRegistry = Registry<std::shared_ptr<Router>, RouterShape>;

// Each token takes its k best experts.
void add_top_k_routers(RouterRegistry& r) {
  r.add<SoftmaxTopKOptions>(
      "softmax_topk",
      "top-k of softmax(logits + noise / E); gates are the probabilities (V-MoE); with two experts the default loss is "
      "GShard's, switch 0.01",
      construct<SoftmaxTopKRouter>);
  r.add<NoisyTopKOptions>(
      "noisy_topk", "top-k of logits + noise of learned scale; gates are a softmax over the chosen (Shazeer et al.)",
      construct<NoisyTopKRouter>);
  r.add<GshardTop2Options>(
      "gshard_top2",
      "the two best experts, the second with a probability that grows with its gate; gates sum to 1 (GShard)",
      construct<GshardTop2Router>);
  r.add<SwitchTop1Options>("switch_top1",
                           "the best expert, with jitter on the tokens; the gate is its probability (Switch)",
                           construct<SwitchTop1Router>);
  r.add<CosineOptions>("cosine",
                       "top-k by the cosine similarity of projected token and expert embedding; gates are the "
                       "probabilities, divided by their sum where k > 1 (GMoE)",
                       construct<CosineRouter>);
  r.add<SigmoidBiasOptions>("sigmoid_bias",
                            "top-k of sigmoid(logits) + a bias that balances the load; gates are the sigmoids over "
                            "the sum of the chosen (DeepSeek-V3)",
                            construct<SigmoidBiasRouter>);
}

// All experts, or experts chosen independently of the token.
void add_baseline_routers(RouterRegistry& r) {
  r.add<DenseSoftmaxOptions>("dense_softmax", "every expert; gates are the softmax", construct<DenseSoftmaxRouter>);
  r.add<HashOptions>("hash", "a fixed hash of the token's id or position; gates are 1/k (hash layers)",
                     construct<HashRouter>);
  r.add<RandomOptions>("random", "random experts, resampled at each step; gates are 1/k", construct<RandomRouter>);
  r.add<RoundRobinOptions>("round_robin", "experts in turn, token after token; gates are 1/k",
                           construct<RoundRobinRouter>);
}

// Routing over the batch, over an image, or in groups of experts.
void add_group_routers(RouterRegistry& r) {
  r.add<ExpertChoiceOptions>(
      "expert_choice",
      "each expert takes its best tokens of the batch or of each image; gates are the probabilities (Zhou et al.)",
      construct<ExpertChoiceRouter>);
  r.add<PatchChoiceOptions>("patch_choice",
                            "each expert takes its best patches of each image; gates are a softmax over those "
                            "patches or over all, or 1 (pMoE)",
                            construct<PatchChoiceRouter>);
  r.add<BalancedBatchwiseOptions>(
      "balanced_batchwise",
      "each expert takes the same number of tokens of the batch, in evaluation those above a learned threshold; gates "
      "are a softmax over the experts that took the token (Shazeer et al.)",
      construct<BalancedBatchwiseRouter>);
  r.add<HierarchicalOptions>(
      "hierarchical",
      "noisy top-k of groups, then of the experts in each; gates are the products of both (Shazeer et al.)",
      construct<HierarchicalRouter>);
  r.add<BalancedHierarchicalOptions>("balanced_hierarchical",
                                     "balanced_batchwise on two levels: groups of experts, then the experts in each; "
                                     "gates are the products of both (Shazeer et al.)",
                                     construct<BalancedHierarchicalRouter>);
  r.add<PerImageOptions>(
      "per_image",
      "top-k once for a whole image, from its class token or mean token; gates are the probabilities (Mobile V-MoE)",
      construct<PerImageRouter>);
}

// Balanced assignments of tokens to experts.
void add_assignment_routers(RouterRegistry& r) {
  r.add<BaseOptions>("base",
                     "a balanced linear assignment, in evaluation the best expert; the gate is the sigmoid of its "
                     "logit (BASE layers)",
                     construct<BaseRouter>);
  r.add<SinkhornOptions>("sinkhorn",
                         "top-k of logits balanced by Sinkhorn's iteration, in evaluation of the logits; gates are "
                         "the probabilities or sigmoids (S-BASE)",
                         construct<SinkhornRouter>);
}

// Mixtures of tokens, and varying numbers of experts per token.
void add_soft_and_varying_routers(RouterRegistry& r) {
  r.add<SoftMoeOptions>("soft_moe",
                        "each expert slot takes a weighted mean of an image's tokens, each token a weighted mean of "
                        "the slots' outputs (Soft MoE)",
                        construct<SoftMoeRouter>);
  r.add<ReluOptions>("relu", "every expert with a positive logit, any number of them; gates are the logits (ReMoE)",
                     construct<ReluRouter>);
  r.add<TopPOptions>(
      "top_p",
      "the most probable experts until their probabilities sum to p; gates are the probabilities (Huang et al.)",
      construct<TopPRouter>);
}

}  // namespace

Registry<std::shared_ptr<Router>, RouterShape>& routers() {
  static auto registry = [] {
    RouterRegistry r("router");
    r.share<RouterScopeOptions>();
    add_top_k_routers(r);
    add_baseline_routers(r);
    add_group_routers(r);
    add_assignment_routers(r);
    add_soft_and_varying_routers(r);
    return r;
  }();
  return registry;
}

Registry<std::shared_ptr<Experts>, ExpertShape>& expert_kinds() {
  static auto registry = [] {
    Registry<std::shared_ptr<Experts>, ExpertShape> r("kind of expert");
    r.add<MlpExpertsOptions>(
        "mlp",
        "an MLP: linear layers with an activation between them; `depth` hidden layers, dropout after each activation",
        construct<MlpExperts>);
    r.add<SwigluExpertsOptions>("swiglu", "a gated MLP, (silu(x W) * x V) U", construct<SwigluExperts>);
    r.add<LinearExpertsOptions>("linear", "one linear layer", construct<LinearExperts>);
    r.add<ConvExpertsOptions>("conv", "a small CNN on a square patch: convolution, activation, pooling, linear layer",
                              construct<ConvExperts>);
    r.add<NormConvExpertsOptions>("norm_conv",
                                  "batch norm, ReLU and convolution on a patch of a feature map, each expert computes "
                                  "its own output channels (WRN-pMoE)",
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
    fail_usage("[losses] already has a setting \"", loss.name, "\"; register the loss under another name");
  loss_list().push_back(std::move(loss));
}

std::shared_ptr<Router> make_router(const Json& resolved, const RouterShape& shape) {
  auto router = make_component(routers(), resolved, "router", shape);
  const auto name = resolved.at("router").at("name").get<std::string>();
  if (!router) fail("the function that makes the router ", name, " returned null");
  router->set_registered(name, shape);
  return router;
}

}  // namespace sparsight
