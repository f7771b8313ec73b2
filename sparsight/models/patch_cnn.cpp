#include "sparsight/models/patch_cnn.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/experts.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/pixels.h"
#include "sparsight/models/block_mlp.h"
#include "sparsight/nn/patches.h"
#include "sparsight/ops/grouped_linear.h"

namespace sparsight {

void PatchCnnOptions::declare(OptionSet& set) {
  set.integer("patch", &patch, {0, 4096}, "side of the square patches in pixels; 0: a quarter of the image's");
  set.choice(
      "average", &average, {"taken", "all"},
      "divisor of the sum over patches: the number of patches an expert takes (the paper's 1/l), or of all patches");
}

int64_t filters_of_each(int64_t all, int64_t experts) {
  if (experts < 1 || all % experts != 0)
    fail_usage(all, " filters cannot be divided evenly among ", experts,
               " experts; choose a number of experts that divides ", all,
               ", or set the filters of each with [moe] hidden");
  return all / experts;
}

int64_t patch_cnn_filters(const MoeSpec& moe) {
  constexpr int64_t kAll = 40;  // of all experts together, as in the paper
  if (moe.options.hidden > 0) return moe.options.hidden;
  return moe.layers(1)[0] ? filters_of_each(kAll, moe.options.experts) : kAll;
}

int64_t patch_side(const PatchCnnOptions& options, const ImageShape& image) {
  const int64_t side = options.patch > 0 ? options.patch : image.height / 4;
  if (side == 0 || image.height % side != 0 || image.width % side != 0)
    fail_usage("[model] patch = ", side, " does not divide images of ", image.height, "x", image.width,
               "; choose a divisor of both sides, or resize the images");
  return side;
}

namespace {

// [B,1]: patches of each image that an expert takes, as a mean over the experts and at least 1. The paper's l, and of
// token choice, K S / E. Each image by itself, because routers may take different numbers.
at::Tensor taken_of_images(const Routing& routing, at::ScalarType type) {
  const TokenLayout& layout = routing.layout;
  const at::Tensor image = routing.token.floor_divide(std::max<int64_t>(1, layout.per_image));
  return at::bincount(image, {}, layout.images)
      .to(type)
      .div(static_cast<double>(routing.experts))
      .clamp_min(1)
      .unsqueeze(1);
}

}  // namespace

PatchCnn::PatchCnn(const PatchCnnOptions& options, const ModelContext& context)
    : ImageModel(context.image, context.pixels), options_(options), patch_(patch_side(options, image_)) {
  const int64_t width = image_.channels * patch_ * patch_, outputs = head_outputs(image_.classes);
  const MoeSpec* moe = context.moe.layers(1)[0];
  const int64_t filters = patch_cnn_filters(moe ? *moe : context.moe);
  if (moe)
    moe_ = register_module("moe", std::make_shared<MoeLayer>(*moe, LayerContext{"moe", width, filters, outputs}));
  else
    filters_ = register_module("filters", context.moe.make_kind({1, width, filters, outputs}));
}

PatchCnnParts PatchCnn::parts() {
  PatchCnnParts parts;
  if (moe_) parts.router = dynamic_cast<PatchChoiceRouter*>(&moe_->router());
  parts.experts = dynamic_cast<ConvExperts*>(moe_ ? &moe_->experts() : filters_.get());
  if ((moe_ && !parts.router) || !parts.experts)
    fail_usage("this needs a patch_cnn with [router] name = \"patch_choice\" and [experts] name = \"conv\"; set them");
  return parts;
}

std::vector<std::string> PatchCnn::tap_names() const { return {moe_ ? "moe" : "filters"}; }

ImageModel::CompiledOutputs PatchCnn::compile_steps(engine::ProgramBuilder& builder) const {
  const engine::Value planes = builder.planes();
  const engine::Shape tokens{
      .height = image_.height / patch_, .width = image_.width / patch_, .columns = image_.channels * patch_ * patch_};
  const engine::Value patches =
      builder.add<engine::PatchesStep>(planes, builder.new_value(tokens), image_.channels, patch_);
  engine::Value x;
  if (filters_) {
    engine::Shape outputs = tokens;
    outputs.columns = head_outputs(image_.classes);
    x = builder.add<engine::SharedExpertsStep>(patches, engine::Value{}, builder.new_value(outputs),
                                               filters_->compile(builder.form()));
  } else {
    x = moe_->compile(builder, patches, engine::Value{}, {});
  }
  const engine::Shape vector = engine::Shape::vector(x.shape.columns);
  const bool taken = moe_ && !moe_->router().mixes_tokens() && options_.average == "taken";
  x = taken ? builder.add<engine::TakenMeanStep>(x, builder.new_value(vector), builder.find_routing(moe_->path()))
            : engine::add_mean(builder, x);
  return {x, image_.classes == 2 ? engine::add_two_classes(builder, x) : x};
}

ModelOutput PatchCnn::run(const ModelInput& input) {
  TokenLayout layout;
  layout.images = input.images.size(0);
  layout.grid_height = image_.height / patch_;
  layout.grid_width = image_.width / patch_;
  layout.per_image = layout.grid_height * layout.grid_width;
  const at::Tensor patches = image_patches(input.images, patch_).flatten(0, 1);  // [N,D]
  ModelOutput out;
  at::Tensor outputs;  // [N,O]
  at::Tensor taken;    // [B,1], or undefined: all patches
  if (filters_) {
    outputs = filters_->forward(patches, one_group(patches));
  } else {
    const MoeOutput moe = run_moe(*moe_, patches, layout, input, out);
    outputs = moe.tokens;
    if (!moe.routing.soft && options_.average == "taken") taken = taken_of_images(moe.routing, outputs.scalar_type());
  }
  tap(input, out, outputs, moe_ ? "moe" : "filters");
  const at::Tensor sum = as_logits(outputs.view({layout.images, layout.per_image, -1}).sum(1));
  out.features = taken.defined() ? sum / taken : sum / layout.per_image;
  return out;
}

std::vector<PartCost> PatchCnn::cost(const CostOptions& options) const {
  const int64_t height = image_.height / patch_, width = image_.width / patch_, patches = height * width;
  std::vector<PartCost> parts;
  if (moe_) {
    parts = moe_->cost({1, patches, 0, height, width}, options);
  } else {
    const auto rows = static_cast<double>(patches);
    parts.push_back({"filters", filters_->cost({1, patches, rows, 1, 1})});
  }
  const Cost mean = on_units(elementwise_cost(head_outputs(image_.classes)), patches + 1);
  parts.back().cost = parts.back().cost + mean;
  return parts;
}

at::Tensor PatchCnn::classify(const at::Tensor& features) {
  return image_.classes == 2 ? two_class_logits(features) : features;
}

}  // namespace sparsight
