#include "sparsight/models/cnn.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/nn/conv_shortcut.h"
#include "sparsight/nn/layer_scale.h"

namespace sparsight {
namespace {

ConvBlockRecipe cnn_block(const ResidualBlockOptions& options) {
  return {.in = options.in,
          .out = options.out,
          .stride = options.stride,
          .shortcut = options.has_projection() ? Shortcut::projection : Shortcut::identity,
          .relu = true,
          .make =
              [options](bool branch) {
                ResidualBlockOptions some = options;
                some.branch = branch;
                return std::make_shared<ResidualBlockImpl>(some);
              },
          .projection =
              [options] { return std::make_shared<ConvShortcut>(options.in, options.out, options.stride, false); },
          .projection_name = "shortcut"};
}

}  // namespace

void CnnOptions::declare(OptionSet& set) {
  set.integers("widths", &widths, {1, 16384},
               "channels of each stage; every stage but the first halves the resolution");
  set.integer("blocks", &blocks, {1, 100}, "residual blocks per stage");
}

Cnn::Cnn(const CnnOptions& options, const ModelContext& context) : ImageModel(context.image, context.pixels) {
  if (options.widths.empty()) fail_usage("[model] widths is empty; list the channels of at least one stage");
  stem_ = register_module("stem", Conv(ConvOptions{image_.channels, options.widths[0]}));
  stem_norm_ = register_module("stem_norm", group_norm_of_eights(options.widths[0]));
  const auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  const auto stages = std::ssize(options.widths);
  blocks_.emplace(context.moe, stages * options.blocks, MapSize{image_.height, image_.width});
  int64_t channels = options.widths[0], next = 0;
  for (size_t stage = 0; stage < options.widths.size(); ++stage)
    for (int64_t i = 0; i < options.blocks; ++i) {
      const ResidualBlockOptions block{channels, options.widths[stage], stage > 0 && i == 0 ? 2 : 1};
      blocks_->add(*blocks, cat(next), cat("blocks.", next), cnn_block(block));
      channels = block.out;
      ++next;
    }
  blocks_->add_router(*this);
  if (!context.moe.shares_router()) moe_ = register_map_moe(*this, context.moe, channels);
  head_ = register_module("head", Linear(channels, image_.classes));
}

std::vector<std::string> Cnn::tap_names() const {
  std::vector<std::string> names{"stem_norm"};
  names.insert(names.end(), blocks_->paths().begin(), blocks_->paths().end());
  if (moe_) names.emplace_back("moe");
  return names;
}

std::vector<engine::ConvStep> Cnn::stem_steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  steps.push_back(conv_step(*stem_, type));
  steps.back().norm = packed_group_norm(*stem_norm_);
  steps.back().relu = true;
  return steps;
}

ImageModel::CompiledOutputs Cnn::compile_steps(engine::ProgramBuilder& builder) const {
  engine::Value x = engine::add_convs(builder, builder.map(), stem_steps(builder.type()));
  x = blocks_->compile(builder, x);
  if (moe_) x = moe_->compile(builder, x);
  x = engine::add_mean(builder, x);
  return {x, engine::add_linear(builder, x, packed_linear(*head_, WeightType::fp32))};
}

at::Tensor Cnn::run_stem(const ModelInput& input, ModelOutput& out) {
  const at::Tensor stem = stem_norm_->forward(stem_->forward(input.images));
  tap(input, out, stem, "stem_norm");
  return at::relu(stem);
}

ModelOutput Cnn::run(const ModelInput& input) {
  ModelOutput out;
  at::Tensor x = blocks_->run(run_stem(input, out), input, out,
                              [&](const at::Tensor& y, const std::string& path) { tap(input, out, y, path); });
  if (moe_) {
    x = moe_->forward(x, input, out);
    tap(input, out, x, "moe");
  }
  out.features = x.mean({2, 3});
  return out;
}

std::vector<PartCost> Cnn::cost(const CostOptions& options) const {
  MapSize map{image_.height, image_.width};
  const int64_t channels = stem_->weight.size(0);
  const Cost stem_norm = stem_norm_->cost() + elementwise_cost(channels);  // and the relu
  std::vector<PartCost> parts{{"stem", stem_->cost(map), map_text(channels, map)},
                              {"stem_norm", on_units(stem_norm, map.positions()), map_text(channels, map)}};
  append(parts, blocks_->cost(map, options));
  if (moe_) append(parts, moe_->cost(map, options));
  const Cost mean = on_units(elementwise_cost(head_->weight.size(1)), map.positions());
  parts.push_back({"head", head_->cost() + mean, std::to_string(image_.classes)});
  return parts;
}

at::Tensor Cnn::classify(const at::Tensor& features) { return as_logits(head_->forward(features)); }

}  // namespace sparsight
