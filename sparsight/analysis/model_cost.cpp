#include "sparsight/analysis/model_cost.h"

#include "sparsight/analysis/component_settings.h"
#include "sparsight/analysis/moe_cost.h"
#include "sparsight/analysis/vit_cost.h"
#include "sparsight/analysis/wide_resnet_cost.h"
#include "sparsight/core/error.h"
#include "sparsight/models/patch_cnn.h"
#include "sparsight/models/vit.h"
#include "sparsight/models/wide_resnet.h"
#include "sparsight/moe/experts/norm_conv_experts.h"
#include "sparsight/moe/routers/patch_choice.h"

namespace sparsight {
namespace {

// The patches that each expert of a wide_resnet takes of the `patches` of an image.
int64_t patches_taken(const Json& resolved, int64_t patches) {
  if (name_in(resolved, "router") != "patch_choice" || name_in(resolved, "experts") != "norm_conv")
    fail_usage("the cost of wide_resnet is counted with router patch_choice and experts norm_conv, not with router ",
               name_in(resolved, "router"), " and experts ", name_in(resolved, "experts"));
  const auto router = settings_in<PatchChoiceOptions>(resolved, "router");
  check_patches(router, /*training=*/true, patches);
  return router.patches;
}

std::vector<PartCost> cost_of_vit(const Json& resolved, const ImageShape& image) {
  const VitOptions options = settled(settings_in<VitOptions>(resolved, "model"), image);
  VitShape vit{.channels = image.channels,
               .height = image.height,
               .width = image.width,
               .classes = image.classes,
               .tokens_width = options.width,
               .depth = options.depth,
               .mlp_hidden = options.mlp_hidden(),
               .patch = options.patch,
               .class_token = options.pool == "class",
               .qkv_bias = options.qkv_bias};
  const MoeSpec spec = read_moe_spec(resolved);
  const std::vector<const MoeSpec*> is_moe = spec.layers(options.depth);
  for (int64_t i = 0; i < options.depth; ++i)
    if (is_moe[static_cast<size_t>(i)])
      vit.moe_blocks[i] =
          moe_cost(resolved, {cat("blocks.", i, ".mlp"), vit.tokens_width, vit.mlp_hidden}, vit.tokens());
  return vit_cost(vit);
}

std::vector<PartCost> cost_of_wide_resnet(const Json& resolved, const ImageShape& image) {
  const auto options = settings_in<WideResnetOptions>(resolved, "model");
  check_depth(options);
  WideResnetShape net{image.channels, image.height, image.width, head_outputs(image.classes),
                      options.depth,  options.widen};
  const MoeSpec moe = read_moe_spec(resolved);
  if (moe.layers(1)[0]) {
    net.patch = patch_side(options, image);
    net.taken = patches_taken(resolved, net.patches());
    const auto experts = settings_in<NormConvExpertsOptions>(resolved, "experts");
    net.experts = moe.options.experts;
    net.kernel = experts.kernel;
    net.gathered = experts.path == "gathered";
    net.shared = moe.options.shared;
    const int64_t channels = 64 * options.widen;             // of the last group
    for (const int64_t sharing : {net.experts, net.shared})  // says where its settings do not fit
      if (sharing > 0) experts.filters_for({sharing, channels * net.patch * net.patch});
  }
  return wide_resnet_cost(net);
}

std::vector<PartCost> cost_of_patch_cnn(const Json& resolved, const ImageShape& image) {
  const auto options = settings_in<PatchCnnOptions>(resolved, "model");
  const MoeSpec moe = read_moe_spec(resolved);
  const int64_t side = patch_side(options, image), patches = image.height / side * (image.width / side);
  const MoePlace place{"moe", image.channels * side * side, patch_cnn_filters(moe), head_outputs(image.classes)};
  if (moe.layers(1)[0]) return moe_cost(resolved, place, patches);
  const Cost filters = expert_cost(resolved, {1, place.width, place.mlp_hidden, place.outputs});
  return {{"filters", on_units(filters, patches)}};
}

}  // namespace

std::vector<PartCost> model_cost(const Json& resolved, const ImageShape& image) {
  const std::string model = name_in(resolved, "model");
  if (model == "vit") return cost_of_vit(resolved, image);
  if (model == "wide_resnet") return cost_of_wide_resnet(resolved, image);
  if (model == "patch_cnn") return cost_of_patch_cnn(resolved, image);
  fail_usage("the cost of ", model, " is not counted; it is for vit, wide_resnet and patch_cnn");
}

}  // namespace sparsight
