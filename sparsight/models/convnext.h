// ConvNeXt (Liu et al. 2022, "A ConvNet for the 2020s"), dense or with MoE layers in chosen blocks. Parameters are
// named and shaped as in timm's ConvNeXt.
//
//   stem      patch x patch convolution with stride patch, layer norm
//   stages    each but the first begins with a layer norm and a 2x2 convolution with stride 2; then blocks
//             (convnext_block.h)
//   end       global average pooling, layer norm "head.norm", linear layer "head.fc"
//
// [moe] blocks counts the blocks of all stages. Where a side is no multiple of a stride, the missing rows are zeros,
// half of them (rounded down) above and left of the map, so that its windows may lie elsewhere than timm's, which begin
// at the first row and leave out an incomplete last window. With another patch than 4 timm's is another network: with 2
// it halves the map before its first stage too, and beyond 4 it dilates its last stages instead of halving the map.
// Letters: moe/axes.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/models/convnext_block.h"
#include "sparsight/models/image_model.h"
#include "sparsight/nn/linear.h"

namespace sparsight {

struct ConvNextOptions {
  std::string size = "custom";
  std::vector<int64_t> depths{1, 1, 2};
  std::vector<int64_t> widths{32, 64, 128};
  int64_t patch = 4;
  double layer_scale = 1e-6;
  double drop_path = 0;
  void declare(OptionSet& set);
  static std::vector<NamedSettings> variants();
};

class ConvNext : public ImageModel {
 public:
  // Raises UsageError unless depths and widths are for equally many stages, at least one.
  ConvNext(const ConvNextOptions& options, const ModelContext& context);
  std::vector<PartCost> cost(const CostOptions& options) const override;
  at::Tensor classify(const at::Tensor& features) override;
  // stem, stages.0.blocks.0 ..., [B,D,H,W] each, and head.norm [B,D], which are the features.
  std::vector<std::string> tap_names() const override;

 protected:
  CompiledOutputs compile_steps(engine::ProgramBuilder& builder) const override;
  ModelOutput run(const ModelInput& input) override;

 private:
  // What comes before the blocks of a stage: the stem, or the layers that halve the map.
  struct Reduction {
    std::string path;  // "stem", "stages.1.downsample"
    bool norm_first = false;
    Conv conv{nullptr};
    LayerNorm norm{nullptr};
  };
  struct Stage {
    Reduction reduction;
    std::vector<std::shared_ptr<ConvNextBlock>> blocks;
  };
  static Reduction make_reduction(torch::nn::Module& owner, const std::string& name, const std::string& path,
                                  const ConvOptions& conv, bool norm_first);
  static at::Tensor run_reduction(Reduction& reduction, const at::Tensor& x);
  static engine::Value compile_reduction(const Reduction& reduction, engine::ProgramBuilder& builder, engine::Value x);
  static std::vector<PartCost> reduction_cost(const Reduction& reduction, MapSize& map);

  std::vector<Stage> stages_;
  LayerNorm head_norm_{nullptr};
  Linear head_{nullptr};
};

}  // namespace sparsight
