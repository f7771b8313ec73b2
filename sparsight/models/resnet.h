// ResNet (He et al. 2016, "Deep residual learning for image recognition") with torchvision's names and numbers, so that
// its files of weights load unchanged; and as DomainBed trains it (Gulrajani & Lopez-Paz 2021, "In search of lost
// domain generalization"): batch norm with the running statistics of the weights that it starts from, dropout of the
// features.
//
//   stem      conv1, bn1, relu: 7x7 with stride 2 and a 3x3 max pool with stride 2, or 3x3 for small images
//   layers    four of blocks (resnet_block.h); each but the first halves the resolution and doubles the channels
//   end       global average pooling, dropout, linear layer "fc"
//
// [moe] blocks = [0] or [-1] adds an MoE layer on the last feature map (map_moe.h). With [router] scope = "model" they
// count the blocks, each of which then exists once for each expert (conv_blocks.h). Letters: moe/axes.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/models/conv_blocks.h"
#include "sparsight/models/image_model.h"
#include "sparsight/models/map_moe.h"
#include "sparsight/nn/resnet_block.h"
#include "sparsight/nn/torch_linear.h"

namespace sparsight {

struct ResnetOptions {
  int64_t depth = 18;
  int64_t base_width = 64;
  std::string stem = "imagenet";
  bool frozen_batch_norm = false;
  double dropout = 0;
  void declare(OptionSet& set);
  static std::vector<NamedSettings> variants();
};

class Resnet : public ImageModel, public HasRouter {
 public:
  // Raises UsageError for a depth other than 18, 34, 50, 101 and 152.
  Resnet(const ResnetOptions& options, const ModelContext& context);
  std::vector<PartCost> cost(const CostOptions& options) const override;
  at::Tensor classify(const at::Tensor& features) override;
  // bn1, layer1.0 ... and, if there is one, moe: [B,channels,height,width] each. The features are after the dropout.
  std::vector<std::string> tap_names() const override;
  Router* own_router() override { return blocks_->router(); }
  const std::string& routing_name() const override { return blocks_->router_name(); }
  RoutingPolicy& policy() override { return blocks_->policy(); }

 protected:
  CompiledOutputs compile_steps(engine::ProgramBuilder& builder) const override;
  ModelOutput run(const ModelInput& input) override;

 private:
  std::vector<engine::ConvStep> stem_steps(WeightType type) const;
  at::Tensor run_stem(const ModelInput& input, ModelOutput& out);
  bool pools() const { return options_.stem == "imagenet"; }

  ResnetOptions options_;
  Conv stem_{nullptr};                // conv1
  BatchNorm stem_norm_{nullptr};      // bn1
  std::optional<ConvBlocks> blocks_;  // layer1.0 ...
  std::shared_ptr<MapMoe> moe_;
  TorchLinear head_{nullptr};  // fc
};

}  // namespace sparsight
