#include "sparsight/models/mobilenet.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/nn/conv_parts.h"
#include "sparsight/nn/dropout.h"

namespace sparsight {
namespace {

constexpr double kMobilenetStem = 32, kMobilenetLast = 1280;
constexpr size_t kMobilenetKept = 1;  // the stage that keeps the resolution of small images

ConvBlockRecipe mobilenet_recipe(const InvertedResidualOptions& options) {
  return {.in = options.in,
          .out = options.out,
          .stride = options.stride,
          .shortcut = options.has_residual() ? Shortcut::identity : Shortcut::none,
          .make = [options](bool branch) {
            InvertedResidualOptions some = options;
            some.branch = branch;
            return std::make_shared<InvertedResidual>(some);
          }};
}

}  // namespace

void MobilenetOptions::declare(OptionSet& set) {
  set.real("width", &width, {0.05, 8}, "multiple of the published channels: 0.5, 0.75, 1, 1.4 ...; rounded to eights");
  set.choice("stem", &stem, {"imagenet", "cifar"},
             "cifar, for small images: the first convolution and the stage of 24 channels keep the resolution");
  set.flag("frozen_batch_norm", &frozen_batch_norm,
           "batch norm uses its running statistics also in training, and does not update them; its scale and shift are "
           "trained");
  set.real("dropout", &dropout, {0, 0.99}, "dropout of the features before the head");
}

int64_t round_to_eights(double channels) {
  const int64_t rounded = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

const std::vector<MobilenetStage>& mobilenet_stages() {
  static const std::vector<MobilenetStage> stages{{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  return stages;
}

void MobilenetHeadImpl::initialize(const InitRandom& random) {
  init_normal(weight, 0.01, random.stream("weight"));
  const torch::NoGradGuard no_grad;
  bias.zero_();
}

Mobilenet::Mobilenet(const MobilenetOptions& options, const ModelContext& context)
    : ImageModel(context.image, context.pixels), options_(options) {
  const bool small = options.stem == "cifar";
  const auto features = register_module("features", std::make_shared<torch::nn::Module>());
  int64_t channels = round_to_eights(kMobilenetStem * options.width), count = 0;
  for (const MobilenetStage& stage : mobilenet_stages()) count += stage.blocks;
  stem_ = make_layer(*features, 0, {.in = image_.channels, .out = channels, .stride = small ? 1 : 2});
  blocks_.emplace(context.moe, count, stem_.conv->output({image_.height, image_.width}));
  int64_t number = 1;
  for (size_t i = 0; i < mobilenet_stages().size(); ++i) {
    const MobilenetStage& stage = mobilenet_stages()[i];
    const int64_t out = round_to_eights(static_cast<double>(stage.channels) * options.width);
    for (int64_t j = 0; j < stage.blocks; ++j, ++number) {
      const int64_t stride = j > 0 || (small && i == kMobilenetKept) ? 1 : stage.stride;
      blocks_->add(*features, cat(number), cat("features.", number),
                   mobilenet_recipe({channels, out, stride, stage.expand}));
      channels = out;
    }
  }
  blocks_->add_router(*this);
  if (!context.moe.shares_router()) moe_ = register_map_moe(*this, context.moe, channels);
  const int64_t last = round_to_eights(kMobilenetLast * std::max(1.0, options.width));
  last_ = make_layer(*features, number, {.in = channels, .out = last, .kernel = 1});
  head_ = register_module("classifier", std::make_shared<torch::nn::Module>())
              ->register_module("1", MobilenetHead(last, image_.classes));
}

Mobilenet::Layer Mobilenet::make_layer(torch::nn::Module& features, int64_t number, const ConvOptions& options) {
  const auto module = features.register_module(cat(number), std::make_shared<torch::nn::Module>());
  return {cat("features.", number), module->register_module("0", Conv(options)),
          module->register_module("1", torchvision_norm(options.out))};
}

std::vector<std::string> Mobilenet::tap_names() const {
  std::vector<std::string> names{stem_.path};
  names.insert(names.end(), blocks_->paths().begin(), blocks_->paths().end());
  if (moe_) names.emplace_back("moe");
  names.push_back(last_.path);
  return names;
}

std::vector<engine::ConvStep> Mobilenet::Layer::steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  steps.push_back(relu6_conv_step(*conv, *norm, type));
  return steps;
}

ImageModel::CompiledOutputs Mobilenet::compile_steps(engine::ProgramBuilder& builder) const {
  engine::Value x = engine::add_convs(builder, builder.map(), stem_.steps(builder.type()));
  x = blocks_->compile(builder, x);
  if (moe_) x = moe_->compile(builder, x);
  x = engine::add_mean(builder, engine::add_convs(builder, x, last_.steps(builder.type())));
  return {x, engine::add_linear(builder, x, packed_linear(head_->weight, head_->bias, WeightType::fp32))};
}

at::Tensor Mobilenet::run_layer(Layer& layer, const at::Tensor& x, const ModelInput& input, ModelOutput& out) {
  const at::Tensor y = at::relu6(layer.norm->forward(layer.conv->forward(x), input.mode.batch_statistics));
  tap(input, out, y, layer.path);
  return y;
}

ModelOutput Mobilenet::run(const ModelInput& given) {
  ModelInput input = given;
  if (options_.frozen_batch_norm) input.mode.batch_statistics = false;
  ModelOutput out;
  at::Tensor x = blocks_->run(run_layer(stem_, input.images, input, out), input, out,
                              [&](const at::Tensor& y, const std::string& path) { tap(input, out, y, path); });
  if (moe_) {
    x = moe_->forward(x, given, out);
    tap(input, out, x, "moe");
  }
  out.features = run_layer(last_, x, input, out).mean({2, 3});
  if (input.mode.dropout)
    out.features = dropout(out.features, options_.dropout, input.random.stream("classifier.dropout"), input.info.image);
  return out;
}

std::vector<PartCost> Mobilenet::cost(const CostOptions& options) const {
  MapSize map{image_.height, image_.width};
  std::vector<PartCost> parts;
  const auto add_layer = [&](const Layer& layer) {
    parts.push_back(conv_part(layer.path + ".0", layer.conv, map));
    parts.push_back(norm_part(layer.path + ".1", layer.norm, map));
  };
  add_layer(stem_);
  append(parts, blocks_->cost(map, options));
  if (moe_) append(parts, moe_->cost(map, options));
  add_layer(last_);
  const Cost mean = on_units(elementwise_cost(head_->weight.size(1)), map.positions());
  parts.push_back({"classifier.1", head_->cost() + mean, std::to_string(image_.classes)});
  return parts;
}

at::Tensor Mobilenet::classify(const at::Tensor& features) { return as_logits(head_->forward(features)); }

}  // namespace sparsight
