#include "sparsight/attacks/routed/clean_pass.h"

#include <torch/types.h>

#include "sparsight/analysis/routing_change.h"
#include "sparsight/core/random.h"
#include "sparsight/moe/moe_layer.h"

namespace sparsight {
namespace {

// All MoE layers of a pass, by path, and the tokens that their experts got.
struct Recorded {
  Routings routings;
  std::map<std::string, at::Tensor> tokens;
};

ExpertsHook recorder(Recorded& recorded, bool with_tokens) {
  return [&recorded, with_tokens](MoeLayer& layer, MoeInput& input, Routing& routing) {
    recorded.routings[layer.path()] = detached(routing);
    if (with_tokens)
      recorded.tokens[layer.path()] = input.tokens.detach().view({input.layout.images, input.layout.per_image, -1});
  };
}

}  // namespace

const CleanPass& CleanImages::pass(AttackedModel& model, bool with_tokens) const {
  if (pass_ && (has_tokens_ || !with_tokens)) return *pass_;
  const torch::NoGradGuard no_grad;
  Recorded recorded;
  const ModelOutput output =
      model.forward(pixels_, {image_, hash_name("attack.clean_pass"), recorder(recorded, with_tokens)});
  const auto pass = std::make_shared<CleanPass>();
  for (const Routing& routing : output.routings)
    if (routing.clean_logits.defined()) {
      const ExpertSets sets = chosen_sets(routing);
      pass->decisions[routing.layer] = {at::log_softmax(routing.clean_logits.detach(), 1).view_as(sets.member),
                                        sets.member};
    }
  pass->routings = RoutingReplay(std::move(recorded.routings));
  pass->tokens = std::move(recorded.tokens);
  pass_ = pass;
  has_tokens_ = with_tokens;
  return *pass_;
}

}  // namespace sparsight
