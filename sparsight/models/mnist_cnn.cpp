#include "sparsight/models/mnist_cnn.h"

#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"

#include <algorithm>
#include <array>

namespace sparsight {
namespace {

constexpr std::array<int64_t, 4> kMnistWidths{64, 128, 128, 128};
constexpr int64_t kMnistGroups = 8;

}  // namespace

MnistCnn::MnistCnn(const MnistCnnOptions&, const ModelContext& context) : ImageModel(context.image, context.pixels) {
  int64_t channels = image_.channels;
  for (size_t i = 0; i < kMnistWidths.size(); ++i) {
    const ConvOptions conv{channels,       kMnistWidths[i],      3,
                           i == 1 ? 2 : 1,
                           /*bias=*/true,  ConvPadding::centred, ConvInit::torch_default};
    convs_.push_back(register_module(cat("conv", i + 1), Conv(conv)));
    channels = conv.out;
  }
  for (size_t i = 0; i < kMnistWidths.size(); ++i)
    norms_.push_back(register_module(cat("bn", i), GroupNorm(kMnistGroups, kMnistWidths[i])));
  moe_ = register_map_moe(*this, context.moe, channels);
  head_ = register_module("classifier", TorchLinear(channels, image_.classes));
}

std::vector<std::string> MnistCnn::tap_names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < norms_.size(); ++i) names.push_back(cat("bn", i));
  if (moe_) names.emplace_back("moe");
  return names;
}

std::vector<engine::ConvStep> MnistCnn::conv_steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  engine::ConvBuffer from = engine::ConvBuffer::input;
  for (size_t i = 0; i < convs_.size(); ++i) {
    engine::ConvStep step = conv_step(*convs_[i], type);
    step.norm = packed_group_norm(*norms_[i]);
    step.relu_first = true;
    step.from = from;
    if (i + 1 < convs_.size())
      step.to = from = i % 2 == 0 ? engine::ConvBuffer::hidden : engine::ConvBuffer::second_hidden;
    steps.push_back(std::move(step));
  }
  return steps;
}

ImageModel::CompiledOutputs MnistCnn::compile_steps(engine::ProgramBuilder& builder) const {
  engine::Value x = engine::add_convs(builder, builder.map(), conv_steps(builder.type()));
  if (moe_) x = moe_->compile(builder, x);
  x = engine::add_mean(builder, x);
  return {x, engine::add_linear(builder, x, packed_linear(head_->weight, head_->bias, WeightType::fp32))};
}

at::Tensor MnistCnn::run_layers(const ModelInput& input, ModelOutput& out) {
  at::Tensor x = input.images;
  for (size_t i = 0; i < convs_.size(); ++i) {
    x = norms_[i]->forward(at::relu(convs_[i]->forward(x)));
    tap(input, out, x, "bn", i);
  }
  return x;
}

ModelOutput MnistCnn::run(const ModelInput& input) {
  ModelOutput out;
  at::Tensor x = run_layers(input, out);
  if (moe_) {
    x = moe_->forward(x, input, out);
    tap(input, out, x, "moe");
  }
  out.features = x.mean({2, 3});
  return out;
}

std::vector<PartCost> MnistCnn::cost(const CostOptions& options) const {
  MapSize map{image_.height, image_.width};
  std::vector<PartCost> parts;
  for (size_t i = 0; i < convs_.size(); ++i) {
    const int64_t channels = convs_[i]->weight.size(0);
    const Cost conv = convs_[i]->cost(map);
    map = convs_[i]->output(map);
    const std::string text = map_text(channels, map);
    const Cost norm = norms_[i]->cost() + elementwise_cost(channels);  // and the relu
    parts.push_back({cat("conv", i + 1), conv, text});
    parts.push_back({cat("bn", i), on_units(norm, map.positions()), text});
  }
  if (moe_) append(parts, moe_->cost(map, options));
  const Cost mean = on_units(elementwise_cost(head_->weight.size(1)), map.positions());
  parts.push_back({"classifier", head_->cost() + mean, std::to_string(image_.classes)});
  return parts;
}

at::Tensor MnistCnn::classify(const at::Tensor& features) { return as_logits(head_->forward(features)); }

}  // namespace sparsight
