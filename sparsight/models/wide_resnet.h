// The wide residual network (Zagoruyko & Komodakis 2016, "Wide Residual Networks") with pre-activation blocks, and
// WRN-pMoE, which is based on it: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably
// Sample-efficient for Convolutional Neural Networks", figures 17 and 18 and the authors' code.
//
//   stem      3x3 convolution to 16 channels
//   groups    three of n blocks, depth = 6 n + 4; 16, 32 and 64 times `widen` channels; groups 1 and 2 have stride 2
//   block     x + conv(relu(norm(conv(relu(norm(x)))))). The first block of each group, also of group 0, has a 1x1
//             convolution as its shortcut; the other blocks of deeper networks have the identity (He et al. 2016,
//             "Identity Mappings in Deep Residual Networks"; the paper's network of depth 10 has no such block)
//   end       norm, relu, global average pooling, linear layer
//
// [moe] blocks = [0] or [-1]: an MoE layer replaces the last block's second convolution and its norm, and the block
// has no shortcut. The layer's tokens are the patches of the first convolution's output. Experts "norm_conv" with
// router "patch_choice" and its gate "softmax_topl" are the paper's; any others can be chosen. Letters: moe/axes.md.
#pragma once

#include <vector>

#include "sparsight/models/image_model.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/glorot.h"
#include "sparsight/nn/packed_convs.h"

namespace sparsight {

struct WideResnetOptions {
  int64_t depth = 10;
  int64_t widen = 10;
  std::string padding = "same";
  double norm_epsilon = 1e-3;
  double norm_momentum = 0.99;
  bool norm_debias = true;
  int64_t patch = 0;
  void declare(OptionSet& set);
  static std::vector<NamedSettings> variants();  // of the paper's tables, and that of pMoE
};

// Raises UsageError unless depth is 6 n + 4.
void check_depth(const WideResnetOptions& options);
// Side of the patches of the last feature map. Raises UsageError where they do not divide it.
int64_t patch_side(const WideResnetOptions& options, const ImageShape& image);

// The shape of one block.
struct WideBlockShape {
  int64_t in = 0, out = 0;  // channels
  int64_t stride = 1;
  bool shortcut = false;  // 1x1 convolution; else the identity
};

class WideBlock : public torch::nn::Module {
 public:
  WideBlock(const WideBlockShape& shape, const WideResnetOptions& options);
  // [B,in,H,W] -> [B,out,ceil(H/stride),ceil(W/stride)]
  at::Tensor forward(const at::Tensor& x, const ForwardMode& mode);
  // Per image. map: size of the input, set to that of the output.
  std::vector<PartCost> cost(const std::string& path, MapSize& map) const;
  std::vector<engine::ConvStep> conv_steps(WeightType type) const;

 private:
  BatchNorm norm1_{nullptr}, norm2_{nullptr};
  Conv conv1_{nullptr}, conv2_{nullptr}, shortcut_{nullptr};
};

// The last block of WRN-pMoE: moe(patches of conv(relu(norm(x)))).
class WideMoeBlock : public torch::nn::Module {
 public:
  // side: of the patches, in positions of the map. path: the block's, for the names of routings.
  WideMoeBlock(const WideBlockShape& shape, const WideResnetOptions& options, const MoeSpec& moe, int64_t side,
               const std::string& path);
  at::Tensor forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out);  // as WideBlock
  std::vector<PartCost> cost(const std::string& path, MapSize& map, const CostOptions& options) const;
  std::vector<engine::ConvStep> conv_steps(WeightType type) const;
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value x) const;

 private:
  BatchNorm norm1_;
  Conv conv1_;
  std::shared_ptr<MoeLayer> moe_;
  int64_t side_;
};

class WideResnet : public ImageModel {
 public:
  // Raises UsageError unless depth is 6 n + 4 and the patches divide the map.
  WideResnet(const WideResnetOptions& options, const ModelContext& context);
  std::vector<PartCost> cost(const CostOptions& options) const override;
  at::Tensor classify(const at::Tensor& features) override;  // logits for two classes are (0, f), as in patch_cnn.h
  // stem, groups.0.0 ... and norm: [B,channels,height,width] each.
  std::vector<std::string> tap_names() const override;

 protected:
  CompiledOutputs compile_steps(engine::ProgramBuilder& builder) const override;
  ModelOutput run(const ModelInput& input) override;

 private:
  std::vector<engine::ConvStep> stem_steps(WeightType type) const;
  Conv stem_{nullptr};
  std::vector<std::string> block_names_;  // of all blocks, "groups.0.0"
  std::vector<std::shared_ptr<WideBlock>> blocks_;
  std::shared_ptr<WideMoeBlock> moe_block_;  // null in a dense network
  BatchNorm norm_{nullptr};
  GlorotLinear head_{nullptr};
};

}  // namespace sparsight
