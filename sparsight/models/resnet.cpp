#include "sparsight/models/resnet.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/nn/conv_parts.h"
#include "sparsight/nn/conv_shortcut.h"
#include "sparsight/nn/dropout.h"

namespace sparsight {
namespace {

// Table 1 of the paper.
struct ResnetDepth {
  int64_t depth;
  std::array<int64_t, 4> blocks;  // of each layer
  bool bottleneck;
};
constexpr std::array<ResnetDepth, 5> kResnetDepths{{{18, {2, 2, 2, 2}, false},
                                                    {34, {3, 4, 6, 3}, false},
                                                    {50, {3, 4, 6, 3}, true},
                                                    {101, {3, 4, 23, 3}, true},
                                                    {152, {3, 8, 36, 3}, true}}};

const ResnetDepth& resnet_depth(int64_t depth) {
  const auto* found = std::ranges::find(kResnetDepths, depth, &ResnetDepth::depth);
  if (found == kResnetDepths.end()) fail_usage("[model] depth must be 18, 34, 50, 101 or 152, got ", depth);
  return *found;
}

ConvBlockRecipe resnet_recipe(const ResnetBlockOptions& options) {
  return {.in = options.in,
          .out = options.out(),
          .stride = options.stride,
          .shortcut = options.has_projection() ? Shortcut::projection : Shortcut::identity,
          .relu = true,
          .make =
              [options](bool branch) {
                ResnetBlockOptions some = options;
                some.branch = branch;
                return std::make_shared<ResnetBlock>(some);
              },
          .projection =
              [options] { return std::make_shared<ConvShortcut>(options.in, options.out(), options.stride, true); },
          .projection_name = "downsample"};
}

}  // namespace

std::vector<NamedSettings> ResnetOptions::variants() {
  std::vector<NamedSettings> all;
  for (const ResnetDepth& shape : kResnetDepths) all.push_back({cat("resnet", shape.depth), {{"depth", shape.depth}}});
  return all;
}

void ResnetOptions::declare(OptionSet& set) {
  set.integer("depth", &depth, {18, 152}, "number of layers: 18, 34, or, with bottleneck blocks, 50, 101 or 152");
  set.integer("base_width", &base_width, {1, 4096},
              "channels of the stem and of the first layer's 3x3 convolutions; each layer doubles them");
  set.choice("stem", &stem, {"imagenet", "cifar"},
             "7x7 convolution with stride 2 and max pool with stride 2; or, for small images, 3x3 convolution");
  set.flag("frozen_batch_norm", &frozen_batch_norm,
           "batch norm uses its running statistics also in training, and does not update them; its scale and shift are "
           "trained (DomainBed's baseline)");
  set.real("dropout", &dropout, {0, 0.99}, "dropout of the features before the head");
}

Resnet::Resnet(const ResnetOptions& options, const ModelContext& context)
    : ImageModel(context.image, context.pixels), options_(options) {
  const ResnetDepth& shape = resnet_depth(options.depth);
  int64_t channels = options.base_width;
  stem_ = register_module("conv1", Conv(ConvOptions{image_.channels, channels, pools() ? 7 : 3, pools() ? 2 : 1}));
  stem_norm_ = register_module("bn1", torchvision_norm(channels));
  MapSize map = stem_->output({image_.height, image_.width});
  if (pools()) map = {(map.height + 1) / 2, (map.width + 1) / 2};
  blocks_.emplace(context.moe, std::accumulate(shape.blocks.begin(), shape.blocks.end(), int64_t{0}), map);
  for (size_t layer = 0; layer < shape.blocks.size(); ++layer) {
    const std::string name = cat("layer", layer + 1);
    const auto blocks = register_module(name, std::make_shared<torch::nn::Module>());
    for (int64_t i = 0; i < shape.blocks[layer]; ++i) {
      const ResnetBlockOptions block{channels, options.base_width << layer, layer > 0 && i == 0 ? 2 : 1,
                                     shape.bottleneck};
      blocks_->add(*blocks, cat(i), cat(name, ".", i), resnet_recipe(block));
      channels = block.out();
    }
  }
  blocks_->add_router(*this);
  if (!context.moe.shares_router()) moe_ = register_map_moe(*this, context.moe, channels);
  head_ = register_module("fc", TorchLinear(channels, image_.classes));
}

std::vector<std::string> Resnet::tap_names() const {
  std::vector<std::string> names{"bn1"};
  names.insert(names.end(), blocks_->paths().begin(), blocks_->paths().end());
  if (moe_) names.emplace_back("moe");
  return names;
}

std::vector<engine::ConvStep> Resnet::stem_steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  steps.push_back(conv_step(*stem_, type, stem_norm_.get()));
  steps.back().relu = true;
  return steps;
}

ImageModel::CompiledOutputs Resnet::compile_steps(engine::ProgramBuilder& builder) const {
  engine::Value x = engine::add_convs(builder, builder.map(), stem_steps(builder.type()));
  if (pools()) x = engine::add_max_pool(builder, x);
  x = blocks_->compile(builder, x);
  if (moe_) x = moe_->compile(builder, x);
  x = engine::add_mean(builder, x);
  return {x, engine::add_linear(builder, x, packed_linear(head_->weight, head_->bias, WeightType::fp32))};
}

at::Tensor Resnet::run_stem(const ModelInput& input, ModelOutput& out) {
  at::Tensor x = stem_norm_->forward(stem_->forward(input.images), input.mode.batch_statistics);
  tap(input, out, x, "bn1");
  x = at::relu(x);
  return pools() ? at::max_pool2d(x, 3, 2, 1) : x;
}

ModelOutput Resnet::run(const ModelInput& given) {
  ModelInput input = given;
  if (options_.frozen_batch_norm) input.mode.batch_statistics = false;
  ModelOutput out;
  at::Tensor x = blocks_->run(run_stem(input, out), input, out,
                              [&](const at::Tensor& y, const std::string& path) { tap(input, out, y, path); });
  if (moe_) {
    x = moe_->forward(x, given, out);
    tap(input, out, x, "moe");
  }
  out.features = x.mean({2, 3});
  if (input.mode.dropout)
    out.features = dropout(out.features, options_.dropout, input.random.stream("fc.dropout"), input.info.image);
  return out;
}

// Finding the maxima of the pool is not counted, as in cost/layer_cost.h.
std::vector<PartCost> Resnet::cost(const CostOptions& options) const {
  MapSize map{image_.height, image_.width};
  std::vector<PartCost> parts{conv_part("conv1", stem_, map)};
  parts.push_back(norm_part("bn1", stem_norm_, map));
  if (pools()) map = {(map.height + 1) / 2, (map.width + 1) / 2};
  append(parts, blocks_->cost(map, options));
  if (moe_) append(parts, moe_->cost(map, options));
  const Cost mean = on_units(elementwise_cost(head_->weight.size(1)), map.positions());
  parts.push_back({"fc", head_->cost() + mean, std::to_string(image_.classes)});
  return parts;
}

at::Tensor Resnet::classify(const at::Tensor& features) { return as_logits(head_->forward(features)); }

}  // namespace sparsight
