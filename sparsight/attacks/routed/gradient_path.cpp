#include "sparsight/attacks/routed/gradient_path.h"

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/moe_layer.h"

namespace sparsight {
namespace {

// All experts for each token.
void mix(Routing& routing, double temperature) {
  if (routing.soft) return;
  if (!routing.clean_logits.defined())
    fail("the gradient through a mixture needs the logits of each router, but that of ", printable(routing.layer),
         " has none; use gradient = model, experts or router");
  const at::Tensor gate = at::softmax(routing.clean_logits / temperature, 1);
  const at::Tensor expert = torch::arange(routing.experts, routing.expert.options());
  choose_per_token(routing, expert.expand({routing.tokens, routing.experts}), gate);
  routing.kept = routing.capacity = routing.position = at::Tensor();
  routing.varying = routing.skips = false;
  finish_routing(routing);
  if (routing.valid.defined()) drop_padding(routing, at::Tensor(routing.valid));
}

// The clean image's choices and gates. What losses of the routing read stays that of the router.
void replay(Routing& routing, const Routing& clean) {
  Routing replayed = clean;
  for (const auto field : {&Routing::clean_logits, &Routing::noisy_logits, &Routing::scores, &Routing::noise_scale})
    replayed.*field = routing.*field;
  replayed.layer = routing.layer;
  replayed.losses = routing.losses;
  routing = std::move(replayed);
}

}  // namespace

void GradientPath::declare(OptionSet& set) {
  set.choice("gradient", &through, {"model", "mixture", "experts", "router"},
             "way of the gradient through MoE layers: as the model routes; through all experts, weighted by a softmax; "
             "through the experts alone, with the clean image's routing; or through the gates alone, with the clean "
             "image's tokens. The result is always judged by the model itself");
  set.real("temperature", &temperature, {1e-3, 1e3}, "of the softmax of gradient = mixture");
}

ExpertsHook make_hook(const GradientPath& path, const CleanPass* clean, const at::Tensor& row, int64_t* layers) {
  *layers = 0;
  if (path.is_model()) return {};
  if (path.through == "mixture")
    return [temperature = path.temperature, layers](MoeLayer&, MoeInput&, Routing& routing) {
      ++*layers;
      mix(routing, temperature);
    };
  SPARSIGHT_CHECK(clean && row.defined());
  if (path.through == "router")
    return [clean, row, layers](MoeLayer& layer, MoeInput& input, Routing&) {
      ++*layers;
      const at::Tensor tokens = clean->tokens.at(layer.path()).index_select(0, row);
      if (tokens.size(0) * tokens.size(1) != input.tokens.size(0))
        fail("the gradient through the router needs a pass over the attacked images alone, got ", input.tokens.size(0),
             " tokens for ", row.size(0), " images");
      input.tokens = tokens.flatten(0, 1);
    };
  return [replayed = clean->routings.of(row), layers](MoeLayer& layer, MoeInput&, Routing& routing) {
    ++*layers;
    replay(routing, replayed.at(layer.path()));
  };
}

}  // namespace sparsight
