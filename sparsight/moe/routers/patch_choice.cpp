#include "sparsight/moe/routers/patch_choice.h"

#include <limits>

#include "sparsight/engine/routers/expert_picks.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/expert_picks.h"
#include "sparsight/moe/routers/router_logits.h"

namespace sparsight {
namespace {

// clean: [N,E]. Returns [N,E]: the softmax over the patches of each image, 0 for padding and class tokens.
at::Tensor softmax_over_patches(const at::Tensor& clean, const at::Tensor& valid, int64_t images, int64_t per_image) {
  const at::Tensor logits = clean.view({images, per_image, clean.size(1)});
  if (!valid.defined()) return at::softmax(logits, 1).view_as(clean);
  const at::Tensor out = valid.reshape({images, per_image, 1}).logical_not();
  // Not -inf: an image without patches would become NaN.
  return at::softmax(logits.masked_fill(out, std::numeric_limits<float>::lowest()), 1)
      .masked_fill(out, 0)
      .view_as(clean);
}

int64_t patches_per_image(const TokenLayout& layout) { return layout.per_image - layout.prefix; }

// [N]: true for patches; undefined where every token is one.
at::Tensor valid_patches(const at::Tensor& valid, const TokenLayout& layout) {
  if (layout.prefix == 0 || layout.per_image == 0) return valid;
  at::Tensor is_patch = valid.defined() ? valid.reshape({layout.images, layout.per_image}).clone()
                                        : at::ones({layout.images, layout.per_image}, at::kBool);
  is_patch.narrow(1, 0, layout.prefix).fill_(false);
  return is_patch.view({-1});
}

}  // namespace

void PatchChoiceOptions::declare(OptionSet& set) {
  declare_choices(set, "patches", &patches, &eval_patches, "number of patches of each image that each expert takes");
  set.choice("gate", &gate, {"topl_softmax", "softmax_topl", "ones"},
             "softmax over the patches taken, softmax over all patches of the image, or 1");
  set.real("init_std", &init_std, {0, 1000}, "standard deviation of the router's initial weights");
}

void check_patches(const PatchChoiceOptions& options, bool training, int64_t tokens) {
  engine::check_patches(select_choices(training, options.patches, options.eval_patches), tokens);
}

Routing route_patch_choice(const at::Tensor& clean, const at::Tensor& valid, int64_t images,
                           const PatchChoiceOptions& options) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  const at::Tensor ranked = ranked_tokens(clean, images, valid);
  const int64_t per_image = ranked.size(2);
  routing.scores = softmax_over_patches(clean, valid, images, per_image);
  const at::Tensor count = valid.defined() ? valid.reshape({images, per_image}).sum(1).clamp_max(options.patches)
                                           : at::full({images}, std::min(options.patches, per_image), ranked.options());
  choose_per_expert(routing, ranked, count);
  if (options.gate == "ones") {
    routing.gate = at::ones(routing.token.sizes(), clean.options());
  } else if (options.gate == "softmax_topl") {
    routing.gate = at_assignments(routing, routing.scores);
  } else {
    const at::Tensor image = routing.token.floor_divide(std::max<int64_t>(1, per_image));
    routing.gate =
        softmax_by_group(at_assignments(routing, clean), routing.expert * images + image, routing.experts * images);
  }
  finish_routing(routing);
  return routing;
}

PatchChoiceRouter::PatchChoiceRouter(const PatchChoiceOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {}

Routing PatchChoiceRouter::choose(const RouterInput& input) {
  PatchChoiceOptions options = options_;
  options.patches = select_choices(input.mode.choices, options_.patches, options_.eval_patches);
  if (input.tokens.size(0) > 0) check_patches(options_, input.mode.choices, patches_per_image(input.layout));
  return route_patch_choice(router_logits(input.tokens, weight), valid_patches(input.context.valid, input.layout),
                            input.layout.images, options);
}

void PatchChoiceRouter::initialize(const InitRandom& random) {
  init_normal(weight, options_.init_std, random.stream("weight"));
}

std::unique_ptr<engine::Router> PatchChoiceRouter::compile() const {
  using Gates = engine::PatchChoiceRouter::PatchGates;
  return std::make_unique<engine::PatchChoiceRouter>(engine::RouterLogits(linear_map(weight)),
                                                     select_choices(false, options_.patches, options_.eval_patches),
                                                     options_.gate == "ones"           ? Gates::ones
                                                     : options_.gate == "softmax_topl" ? Gates::softmax_topl
                                                                                       : Gates::topl_softmax);
}

RouterCost PatchChoiceRouter::cost(const TokenLayout& layout) const {
  check_patches(options_, /*training=*/true, patches_per_image(layout));
  const int64_t experts = weight.size(0);
  return expert_choice_cost(router_cost(weight.size(1), experts), static_cast<double>(experts * options_.patches),
                            experts, layout);
}

}  // namespace sparsight
