#include "sparsight/engine/file/kinds.h"

#include "sparsight/engine/conv_experts.h"
#include "sparsight/engine/routers/expert_picks.h"
#include "sparsight/engine/routers/fixed.h"
#include "sparsight/engine/routers/sigmoid_bias.h"
#include "sparsight/engine/routers/soft.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/engine/routers/two_level.h"
#include "sparsight/engine/routers/varying.h"
#include "sparsight/engine/steps/attention_pool.h"
#include "sparsight/engine/steps/blocks.h"
#include "sparsight/engine/steps/experts.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/pixels.h"
#include "sparsight/engine/steps/route.h"
#include "sparsight/engine/steps/rows.h"

namespace sparsight::engine {
namespace {

template <class Base, class Part>
std::unique_ptr<Base> make() {
  return std::make_unique<Part>();
}

}  // namespace

const std::vector<Kind<Step>>& step_kinds() {
  static const std::vector<Kind<Step>> kinds{
      {"normalize", make<Step, NormalizeStep>},
      {"patches", make<Step, PatchesStep>},
      {"embed", make<Step, EmbedStep>},
      {"attention", make<Step, BlockStep>},
      {"block", make<Step, BlockStep>},
      {"attention with qk norm", BlockStep::with_qk_norm},
      {"block with qk norm", BlockStep::with_qk_norm},
      {"attention pool", make<Step, AttentionPoolStep>},
      {"route", make<Step, RouteStep>},
      {"experts", make<Step, ExpertsStep>},
      {"shared experts", make<Step, SharedExpertsStep>},
      {"convolve", make<Step, ConvolveStep>},
      {"max pool", make<Step, MaxPoolStep>},
      {"max of windows", make<Step, WindowMaxStep>},
      {"map to patches", make<Step, MapPatchesStep>},
      {"patches to map", make<Step, MapPatchesStep>},
      {"norm", make<Step, NormStep>},
      {"linear", make<Step, LinearStep>},
      {"elementwise", make<Step, ElementwiseStep>},
      {"pool", make<Step, PoolStep>},
      {"mean of patches taken", make<Step, TakenMeanStep>},
      {"two classes", make<Step, TwoClassStep>},
  };
  return kinds;
}

const std::vector<Kind<Router>>& router_kinds() {
  static const std::vector<Kind<Router>> kinds{
      {"top k", make<Router, TopKRouter>},
      {"top p", make<Router, TopPRouter>},
      {"relu", make<Router, ReluRouter>},
      {"sigmoid bias", make<Router, SigmoidBiasRouter>},
      {"two levels", make<Router, TwoLevelRouter>},
      {"expert choice", make<Router, ExpertChoiceRouter>},
      {"patch choice", make<Router, PatchChoiceRouter>},
      {"threshold", make<Router, ThresholdRouter>},
      {"hash", make<Router, HashRouter>},
      {"round robin", make<Router, RoundRobinRouter>},
      {"soft", make<Router, SoftRouter>},
  };
  return kinds;
}

const std::vector<Kind<Experts>>& expert_kinds() {
  static const std::vector<Kind<Experts>> kinds{
      {"mlp", make<Experts, MlpExperts>},
      {"layers", make<Experts, LayeredExperts>},
      {"patch convolution", make<Experts, PatchConvExperts>},
      {"norm and convolution", make<Experts, NormConvExperts>},
      {"blocks", make<Experts, BlockExperts>},
  };
  return kinds;
}

}  // namespace sparsight::engine
