// MobileNetV2 (Sandler et al. 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks", table 2) with
// torchvision's names and numbers, so that its files of weights load unchanged.
//
//   features.0        3x3 convolution with stride 2, batch norm, ReLU6
//   features.1 .. 17  inverted residuals (nn/inverted_residual.h)
//   features.18       1x1 convolution to 1280 channels, batch norm, ReLU6
//   end               global average pooling, dropout, linear layer "classifier.1"
//
// [moe] blocks = [0] or [-1] adds an MoE layer on the last inverted residual's feature map, before features.18
// (map_moe.h). With [router] scope = "model" they count the inverted residuals, features.1 being number 0, each of
// which then exists once for each expert (conv_blocks.h). Letters: moe/axes.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/models/conv_blocks.h"
#include "sparsight/models/image_model.h"
#include "sparsight/models/map_moe.h"
#include "sparsight/nn/inverted_residual.h"

namespace sparsight {

struct MobilenetOptions {
  double width = 1;
  std::string stem = "imagenet";
  bool frozen_batch_norm = false;
  double dropout = 0.2;
  void declare(OptionSet& set);
  static std::vector<NamedSettings> variants() { return {{"mobilenet_v2", {{"width", 1.0}}}}; }
};

// The multiple of eight nearest to `channels`, halves up, at least 8; the next one if that is below 90 % of `channels`
// (torchvision's _make_divisible).
int64_t round_to_eights(double channels);

// A row of table 2.
struct MobilenetStage {
  int64_t expand, channels, blocks, stride;
};
const std::vector<MobilenetStage>& mobilenet_stages();

// The head, with the initial values of torchvision's: weight N(0, 0.01²), bias 0.
class MobilenetHeadImpl : public LinearImpl {
 public:
  using LinearImpl::LinearImpl;
  void initialize(const InitRandom& random) override;
};
TORCH_MODULE(MobilenetHead);

class Mobilenet : public ImageModel, public HasRouter {
 public:
  // Raises UsageError as ConvBlocks does.
  Mobilenet(const MobilenetOptions& options, const ModelContext& context);
  std::vector<PartCost> cost(const CostOptions& options) const override;
  at::Tensor classify(const at::Tensor& features) override;
  // features.0 ... features.18 and, if there is one, moe: [B,channels,height,width] each. The features are after the
  // dropout.
  std::vector<std::string> tap_names() const override;
  Router* own_router() override { return blocks_->router(); }
  const std::string& routing_name() const override { return blocks_->router_name(); }
  RoutingPolicy& policy() override { return blocks_->policy(); }

 protected:
  CompiledOutputs compile_steps(engine::ProgramBuilder& builder) const override;
  ModelOutput run(const ModelInput& input) override;

 private:
  // Convolution, batch norm, ReLU6.
  struct Layer {
    std::string path;
    Conv conv{nullptr};
    BatchNorm norm{nullptr};
    std::vector<engine::ConvStep> steps(WeightType type) const;
  };
  Layer make_layer(torch::nn::Module& features, int64_t number, const ConvOptions& options);
  at::Tensor run_layer(Layer& layer, const at::Tensor& x, const ModelInput& input, ModelOutput& out);

  MobilenetOptions options_;
  Layer stem_, last_;
  std::optional<ConvBlocks> blocks_;
  std::shared_ptr<MapMoe> moe_;
  MobilenetHead head_{nullptr};  // classifier.1
};

}  // namespace sparsight
