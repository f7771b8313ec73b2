#include "sparsight/models/whitened_cnn.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/nn/conv_parts.h"
#include "sparsight/nn/packed_convs.h"
#include "sparsight/nn/whitening.h"

namespace sparsight {
namespace {

constexpr int64_t kWhiteningKernel = 2;

Conv dirac_conv(int64_t in, int64_t out) {
  ConvOptions options{in, out};
  options.init = ConvInit::dirac;
  return Conv(options);
}

BatchNorm fast_norm(int64_t channels) { return BatchNorm(BatchNormOptions{channels, 1e-5, 0.6, /*debias=*/false}); }

Conv whitening_conv(int64_t channels) {
  ConvOptions options{channels, 2 * channels * kWhiteningKernel * kWhiteningKernel, kWhiteningKernel};
  options.bias = true;
  options.padding = ConvPadding::same;  // zeros below and to the right
  options.init = ConvInit::torch_default;
  return Conv(options);
}

}  // namespace

void WhitenedCnnOptions::declare(OptionSet& set) {
  set.integers("widths", &widths, {1, 16384}, "channels of each group of two convolutions, which halves the map");
  set.real("whitening_epsilon", &whitening_epsilon, {1e-12, 1e6},
           "added to the variances of patches before the first convolution divides by their roots");
}

WhitenedGroup::WhitenedGroup(int64_t in, int64_t out)
    : conv1_(register_module("conv1", dirac_conv(in, out))),
      conv2_(register_module("conv2", dirac_conv(out, out))),
      norm1_(register_module("norm1", fast_norm(out))),
      norm2_(register_module("norm2", fast_norm(out))) {}

at::Tensor WhitenedGroup::forward(const at::Tensor& x, bool batch_statistics) {
  const at::Tensor halved = at::relu(norm1_->forward(at::max_pool2d(conv1_->forward(x), 2), batch_statistics));
  return at::relu(norm2_->forward(conv2_->forward(halved), batch_statistics));
}

engine::Value WhitenedGroup::compile(engine::ProgramBuilder& builder, engine::Value x) const {
  std::vector<engine::ConvStep> first, second;
  first.push_back(conv_step(*conv1_, builder.type()));
  const engine::Value pooled = engine::add_window_max(builder, engine::add_convs(builder, x, std::move(first)), 2);
  // relu(norm1(.)), then the convolution: one step.
  second.push_back(conv_step(*conv2_, builder.type(), norm2_.get()));
  second.back().before = packed_affine(*norm1_);
  second.back().relu = true;
  return engine::add_convs(builder, pooled, std::move(second));
}

std::vector<PartCost> WhitenedGroup::cost(const std::string& path, MapSize& map) const {
  std::vector<PartCost> parts{conv_part(path + ".conv1", conv1_, map)};
  map = {map.height / 2, map.width / 2};
  parts.push_back(norm_part(path + ".norm1", norm1_, map));
  parts.push_back(conv_part(path + ".conv2", conv2_, map));
  parts.push_back(norm_part(path + ".norm2", norm2_, map));
  return parts;
}

WhitenedCnn::WhitenedCnn(const WhitenedCnnOptions& options, const ModelContext& context)
    : ImageModel(context.image, context.pixels), options_(options) {
  const auto groups = std::ssize(options.widths);
  if (groups == 0) fail_usage("[model] widths is empty; list the channels of at least one group");
  const int64_t side = std::min(image_.height, image_.width);
  if (side >> groups == 0)
    fail_usage("[model] widths has ", groups, " groups, each of which halves the map, but the images have ",
               image_.height, "x", image_.width, " pixels; list fewer");
  whiten_ = register_module("whiten", whitening_conv(image_.channels));
  const auto list = register_module("groups", std::make_shared<torch::nn::Module>());
  int64_t channels = whiten_->weight.size(0);
  for (const int64_t width : options.widths) {
    groups_.push_back(list->register_module(cat(groups_.size()), std::make_shared<WhitenedGroup>(channels, width)));
    channels = width;
  }
  moe_ = register_map_moe(*this, context.moe, channels);
  head_ = register_module("head", TorchLinear(channels, image_.classes));
}

std::vector<std::string> WhitenedCnn::tap_names() const {
  std::vector<std::string> names{"whiten"};
  for (size_t i = 0; i < groups_.size(); ++i) names.push_back(cat("groups.", i));
  if (moe_) names.emplace_back("moe");
  return names;
}

// As many as have four million patches, which are plenty for their 12 x 12 moments.
int64_t WhitenedCnn::images_to_fit() const {
  constexpr int64_t kPatches = 4'000'000, kMaxImages = 5000;
  return std::clamp<int64_t>(kPatches / (image_.height * image_.width), 1, kMaxImages);
}

void WhitenedCnn::fit_to(const at::Tensor& images) {
  const torch::NoGradGuard no_grad;
  whiten_->weight.copy_(whitening_filters(images, kWhiteningKernel, options_.whitening_epsilon));
  whiten_->bias.zero_();
}

ImageModel::CompiledOutputs WhitenedCnn::compile_steps(engine::ProgramBuilder& builder) const {
  std::vector<engine::ConvStep> first;
  first.push_back(conv_step(*whiten_, builder.type()));
  first.back().relu = true;
  engine::Value x = engine::add_convs(builder, builder.map(), std::move(first));
  for (const auto& group : groups_) x = group->compile(builder, x);
  if (moe_) x = moe_->compile(builder, x);
  x = engine::add_mean(builder, x);
  return {x, engine::add_linear(builder, x, packed_linear(head_->weight, head_->bias, WeightType::fp32))};
}

ModelOutput WhitenedCnn::run(const ModelInput& input) {
  ModelOutput out;
  at::Tensor x = whiten_->forward(input.images);
  tap(input, out, x, "whiten");
  x = at::relu(x);
  for (size_t i = 0; i < groups_.size(); ++i) {
    x = groups_[i]->forward(x, input.mode.batch_statistics);
    tap(input, out, x, "groups.", i);
  }
  if (moe_) {
    x = moe_->forward(x, input, out);
    tap(input, out, x, "moe");
  }
  out.features = x.mean({2, 3});
  return out;
}

std::vector<PartCost> WhitenedCnn::cost(const CostOptions& options) const {
  MapSize map{image_.height, image_.width};
  std::vector<PartCost> parts{conv_part("whiten", whiten_, map)};
  for (size_t i = 0; i < groups_.size(); ++i) append(parts, groups_[i]->cost(cat("groups.", i), map));
  if (moe_) append(parts, moe_->cost(map, options));
  const Cost mean = on_units(elementwise_cost(head_->weight.size(1)), map.positions());
  parts.push_back({"head", head_->cost() + mean, std::to_string(image_.classes)});
  return parts;
}

at::Tensor WhitenedCnn::classify(const at::Tensor& features) { return as_logits(head_->forward(features)); }

}  // namespace sparsight
