// DomainBed's network for images of 28 x 28 pixels (Gulrajani & Lopez-Paz 2021, "In search of lost domain
// generalization", appendix D), under its names: four 3x3 convolutions to 64, 128, 128 and 128 channels, the second
// with stride 2, each followed by relu and then a group norm of 8 groups; global average pooling; linear layer
// "classifier". [moe] blocks = [0] or [-1] adds an MoE layer on the last feature map (map_moe.h). Letters: moe/axes.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/models/image_model.h"
#include "sparsight/models/map_moe.h"
#include "sparsight/nn/packed_convs.h"
#include "sparsight/nn/torch_linear.h"

namespace sparsight {

struct MnistCnnOptions {
  void declare(OptionSet&) {}
};

class MnistCnn : public ImageModel {
 public:
  MnistCnn(const MnistCnnOptions& options, const ModelContext& context);
  std::vector<PartCost> cost(const CostOptions& options) const override;
  at::Tensor classify(const at::Tensor& features) override;  // features: [B,128]
  // bn0 ... bn3 and, if there is one, moe: [B,channels,height,width] each.
  std::vector<std::string> tap_names() const override;

 protected:
  CompiledOutputs compile_steps(engine::ProgramBuilder& builder) const override;
  ModelOutput run(const ModelInput& input) override;

 private:
  std::vector<engine::ConvStep> conv_steps(WeightType type) const;
  at::Tensor run_layers(const ModelInput& input, ModelOutput& out);

  std::vector<Conv> convs_;       // conv1 ... conv4
  std::vector<GroupNorm> norms_;  // bn0 ... bn3, one after each of them
  std::shared_ptr<MapMoe> moe_;
  TorchLinear head_{nullptr};  // classifier
};

}  // namespace sparsight
