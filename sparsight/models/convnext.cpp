#include "sparsight/models/convnext.h"

#include <numeric>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/nn/conv_parts.h"
#include "sparsight/nn/map_rows.h"
#include "sparsight/nn/packed_convs.h"

namespace sparsight {
namespace {

// Section 3 and table 1 of the paper; all have patch 4.
struct ConvNextSize {
  std::string name;
  std::vector<int64_t> depths, widths;
};

const std::vector<ConvNextSize>& convnext_sizes() {
  static const std::vector<ConvNextSize> sizes{{"tiny", {3, 3, 9, 3}, {96, 192, 384, 768}},
                                               {"small", {3, 3, 27, 3}, {96, 192, 384, 768}},
                                               {"base", {3, 3, 27, 3}, {128, 256, 512, 1024}},
                                               {"large", {3, 3, 27, 3}, {192, 384, 768, 1536}},
                                               {"xlarge", {3, 3, 27, 3}, {256, 512, 1024, 2048}}};
  return sizes;
}

ConvNextOptions with_size(ConvNextOptions options) {
  if (options.size != "custom") {
    const ConvNextSize& size = entry_named(options.size, convnext_sizes(), "ConvNeXt size");
    options.depths = size.depths, options.widths = size.widths;
  }
  if (options.depths.empty() || options.depths.size() != options.widths.size())
    fail_usage("[model] depths has ", options.depths.size(), " stages and widths ", options.widths.size(),
               "; give both for each stage, at least one");
  return options;
}

ConvOptions reducing_conv(int64_t in, int64_t out, int64_t side) {
  return {.in = in,
          .out = out,
          .kernel = side,
          .stride = side,
          .bias = true,
          .padding = ConvPadding::same,
          .init = ConvInit::vit_normal};
}

}  // namespace

std::vector<NamedSettings> ConvNextOptions::variants() {
  std::vector<NamedSettings> all;
  for (const ConvNextSize& size : convnext_sizes()) all.push_back({"convnext_" + size.name, {{"size", size.name}}});
  return all;
}

void ConvNextOptions::declare(OptionSet& set) {
  std::vector<std::string> names{"custom"};
  for (const ConvNextSize& known : convnext_sizes()) names.push_back(known.name);
  set.choice("size", &size, names, "a published size, which sets depths and widths; custom: the settings below");
  set.integers("depths", &depths, {1, 1000}, "blocks of each stage; every stage but the first halves the resolution");
  set.integers("widths", &widths, {1, 16384}, "channels of each stage");
  set.integer("patch", &patch, {1, 1024},
              "side and stride of the first convolution: 4 as published, less for small images");
  set.real("layer_scale", &layer_scale, {0, 10},
           "initial value of the learned factors of each residual branch; 0: none");
  set.real("drop_path", &drop_path, {0, 0.99}, "stochastic depth rate of the last block; grows linearly from 0");
}

ConvNext::Reduction ConvNext::make_reduction(torch::nn::Module& owner, const std::string& name, const std::string& path,
                                             const ConvOptions& conv, bool norm_first) {
  const auto module = owner.register_module(name, std::make_shared<torch::nn::Module>());
  Reduction made{.path = path, .norm_first = norm_first};
  if (norm_first) made.norm = module->register_module("0", LayerNorm(conv.in));
  made.conv = module->register_module(norm_first ? "1" : "0", Conv(conv));
  if (!norm_first) made.norm = module->register_module("1", LayerNorm(conv.out));
  return made;
}

ConvNext::ConvNext(const ConvNextOptions& given, const ModelContext& context)
    : ImageModel(context.image, context.pixels) {
  const ConvNextOptions options = with_size(given);
  const int64_t depth = std::accumulate(options.depths.begin(), options.depths.end(), int64_t{0});
  const std::vector<const MoeSpec*> moe = context.moe.layers(depth);
  Reduction reduction =
      make_reduction(*this, "stem", "stem", reducing_conv(image_.channels, options.widths[0], options.patch), false);
  const auto stages = register_module("stages", std::make_shared<torch::nn::Module>());
  int64_t number = 0;  // of the block
  for (size_t i = 0; i < options.widths.size(); ++i) {
    const std::string path = cat("stages.", i);
    const auto stage = stages->register_module(cat(i), std::make_shared<torch::nn::Module>());
    if (i > 0)
      reduction = make_reduction(*stage, "downsample", path + ".downsample",
                                 reducing_conv(options.widths[i - 1], options.widths[i], 2), true);
    Stage& made = stages_.emplace_back();
    made.reduction = reduction;
    const auto blocks = stage->register_module("blocks", std::make_shared<torch::nn::Module>());
    for (int64_t j = 0; j < options.depths[i]; ++j, ++number) {
      const double rate = depth > 1 ? options.drop_path * static_cast<double>(number) / (depth - 1.0) : 0;
      const ConvNextBlockOptions block{options.widths[i], options.layer_scale, rate, cat(path, ".blocks.", j)};
      made.blocks.push_back(
          blocks->register_module(cat(j), std::make_shared<ConvNextBlock>(block, moe[static_cast<size_t>(number)])));
    }
  }
  const auto head = register_module("head", std::make_shared<torch::nn::Module>());
  head_norm_ = head->register_module("norm", LayerNorm(options.widths.back()));
  head_ = head->register_module("fc", Linear(options.widths.back(), image_.classes));
}

std::vector<std::string> ConvNext::tap_names() const {
  std::vector<std::string> names{"stem"};
  for (const Stage& stage : stages_)
    for (const auto& block : stage.blocks) names.push_back(block->path());
  names.emplace_back("head.norm");
  return names;
}

engine::Value ConvNext::compile_reduction(const Reduction& reduction, engine::ProgramBuilder& builder,
                                          engine::Value x) {
  const auto normed = [&](engine::Value y) {
    return builder.add<engine::NormStep>(y, builder.new_value(y.shape), packed_norm(*reduction.norm));
  };
  std::vector<engine::ConvStep> steps;
  steps.push_back(conv_step(*reduction.conv, builder.type()));
  if (reduction.norm_first) return engine::add_convs(builder, normed(x), std::move(steps));
  return normed(engine::add_convs(builder, x, std::move(steps)));
}

ImageModel::CompiledOutputs ConvNext::compile_steps(engine::ProgramBuilder& builder) const {
  const torch::NoGradGuard no_grad;
  engine::Value x = builder.map();
  for (const Stage& stage : stages_) {
    x = compile_reduction(stage.reduction, builder, x);
    for (const auto& block : stage.blocks) x = block->compile(builder, x);
  }
  x = engine::add_mean(builder, x);
  x = builder.add<engine::NormStep>(x, builder.new_value(x.shape), packed_norm(*head_norm_));
  return {x, engine::add_linear(builder, x, packed_linear(head_->weight, head_->bias, WeightType::fp32))};
}

at::Tensor ConvNext::run_reduction(Reduction& reduction, const at::Tensor& x) {
  const auto normed = [&](const at::Tensor& map) {
    return map_of_rows(reduction.norm->forward(rows_of_map(map)), map.size(2), map.size(3));
  };
  return reduction.norm_first ? reduction.conv->forward(normed(x)) : normed(reduction.conv->forward(x));
}

ModelOutput ConvNext::run(const ModelInput& input) {
  ModelOutput out;
  at::Tensor x = input.images;
  for (Stage& stage : stages_) {
    x = run_reduction(stage.reduction, x);
    if (!stage.reduction.norm_first) tap(input, out, x, "stem");
    for (const auto& block : stage.blocks) {
      x = block->forward(x, input, out);
      tap(input, out, x, block->path());
    }
  }
  out.features = head_norm_->forward(x.mean({2, 3}));
  tap(input, out, out.features, "head.norm");
  return out;
}

std::vector<PartCost> ConvNext::reduction_cost(const Reduction& reduction, MapSize& map) {
  const std::string &path = reduction.path, norm = path + (reduction.norm_first ? ".0" : ".1"),
                    conv = path + (reduction.norm_first ? ".1" : ".0");
  std::vector<PartCost> parts;
  const auto add_norm = [&] {
    const int64_t channels = reduction.norm->weight.size(0);
    parts.push_back({norm, on_units(reduction.norm->cost(), map.positions()), map_text(channels, map)});
  };
  if (reduction.norm_first) add_norm();
  parts.push_back(conv_part(conv, reduction.conv, map));
  if (!reduction.norm_first) add_norm();
  return parts;
}

std::vector<PartCost> ConvNext::cost(const CostOptions& options) const {
  MapSize map{image_.height, image_.width};
  std::vector<PartCost> parts;
  for (const Stage& stage : stages_) {
    append(parts, reduction_cost(stage.reduction, map));
    for (const auto& block : stage.blocks) append(parts, block->cost(map, options));
  }
  const Cost mean = on_units(elementwise_cost(head_->weight.size(1)), map.positions());
  parts.push_back({"head.norm", head_norm_->cost() + mean});
  parts.push_back({"head.fc", head_->cost(), std::to_string(image_.classes)});
  return parts;
}

at::Tensor ConvNext::classify(const at::Tensor& features) { return as_logits(head_->forward(features)); }

}  // namespace sparsight
