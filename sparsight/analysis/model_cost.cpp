#include "sparsight/analysis/model_cost.h"

#include <algorithm>

#include "sparsight/analysis/patch_cnn_cost.h"
#include "sparsight/analysis/wide_resnet_cost.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/models/patch_cnn.h"
#include "sparsight/models/wide_resnet.h"
#include "sparsight/moe/experts/conv_experts.h"
#include "sparsight/moe/experts/norm_conv_experts.h"
#include "sparsight/moe/routers/patch_choice.h"

namespace sparsight {
namespace {

std::string name_in(const Json& resolved, const char* section) { return resolved.at(section).at("name"); }

template <class Options>
Options component(const Json& resolved, const std::string& section) {
  Json settings = resolved;
  settings[section].erase("name");
  return read_section<Options>(settings, section);
}

// The patches that each expert takes. Raises UsageError for other routers and experts.
int64_t patches_taken(const Json& resolved, const char* model, const char* kind) {
  if (name_in(resolved, "router") != "patch_choice" || name_in(resolved, "experts") != kind)
    fail_usage("the cost of ", model, " is counted with router patch_choice and experts ", kind, ", not with router ",
               name_in(resolved, "router"), " and experts ", name_in(resolved, "experts"));
  return component<PatchChoiceOptions>(resolved, "router").patches;
}

int64_t outputs(const ImageShape& image) { return image.classes == 2 ? 1 : image.classes; }

std::vector<PartCost> cost_of_wide_resnet(const Json& resolved, const ImageShape& image) {
  const auto options = component<WideResnetOptions>(resolved, "model");
  WideResnetShape net{image.channels, image.height, image.width, outputs(image), options.depth, options.widen};
  if (const auto moe = read_section<MoeOptions>(resolved, "moe"); !moe.blocks.empty()) {
    net.taken = patches_taken(resolved, "wide_resnet", "norm_conv");
    const auto experts = component<NormConvExpertsOptions>(resolved, "experts");
    net.experts = moe.experts;
    net.patch = options.patch > 0 ? options.patch : std::max<int64_t>(1, (image.height + 3) / 4 / 4);
    net.kernel = experts.kernel;
    net.gathered = experts.path == "gathered";
  }
  return wide_resnet_cost(net);
}

std::vector<PartCost> cost_of_patch_cnn(const Json& resolved, const ImageShape& image) {
  const auto options = component<PatchCnnOptions>(resolved, "model");
  const auto moe = read_section<MoeOptions>(resolved, "moe");
  if (name_in(resolved, "experts") != "conv")
    fail_usage("the cost of patch_cnn is counted with experts conv, not with experts ", name_in(resolved, "experts"));
  const auto experts = component<ConvExpertsOptions>(resolved, "experts");
  PatchCnnShape cnn{image.channels, image.height, image.width, outputs(image)};
  cnn.patch = options.patch > 0 ? options.patch : image.height / 4;
  cnn.train_output = experts.output == "trained";
  if (moe.blocks.empty()) {
    cnn.filters = moe.hidden > 0 ? moe.hidden : 40;
  } else {
    cnn.experts = moe.experts;
    cnn.filters = moe.hidden > 0 ? moe.hidden : filters_of_each(40, moe.experts);
    cnn.taken = patches_taken(resolved, "patch_cnn", "conv");
  }
  return patch_cnn_cost(cnn);
}

}  // namespace

std::vector<PartCost> model_cost(const Json& resolved, const ImageShape& image) {
  const std::string model = name_in(resolved, "model");
  if (model == "wide_resnet") return cost_of_wide_resnet(resolved, image);
  if (model == "patch_cnn") return cost_of_patch_cnn(resolved, image);
  fail_usage("the cost of ", model, " is not counted; it is for wide_resnet and patch_cnn");
}

}  // namespace sparsight
