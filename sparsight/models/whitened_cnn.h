// A plain CNN for small images in the manner of the public CIFAR-10 speed records: a first convolution of whitening
// filters that is fitted to training images, groups of two 3x3 convolutions, each of which halves the map, an optional
// MoE layer on the last map, its mean, head. Jordan 2024, "94% on CIFAR-10 in 3.29 Seconds on a Single GPU",
// arXiv:2404.00498, figure 4.
//
// Differs from the paper: relu instead of gelu, zeros below and to the right of the image, so that maps keep even
// sides, the mean of the last map instead of its maximum, and a head with PyTorch's initial values instead of a factor
// of 1/9. configs/cifar/ has recipes.
#pragma once

#include <vector>

#include "sparsight/models/image_model.h"
#include "sparsight/models/map_moe.h"
#include "sparsight/nn/batch_norm.h"
#include "sparsight/nn/conv.h"
#include "sparsight/nn/torch_linear.h"

namespace sparsight {

struct WhitenedCnnOptions {
  std::vector<int64_t> widths = {64, 256, 256};
  double whitening_epsilon = 5e-4;
  void declare(OptionSet& set);
};

// relu(norm2(conv2(relu(norm1(max_pool(conv1(x))))))), the pool over 2x2 positions.
class WhitenedGroup : public torch::nn::Module {
 public:
  WhitenedGroup(int64_t in, int64_t out);
  at::Tensor forward(const at::Tensor& x, bool batch_statistics);  // [B,in,H,W] -> [B,out,H/2,W/2]
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value x) const;
  std::vector<PartCost> cost(const std::string& path, MapSize& map) const;  // per image

 private:
  Conv conv1_, conv2_;
  BatchNorm norm1_, norm2_;
};

class WhitenedCnn : public ImageModel {
 public:
  // [moe] blocks = [0] or [-1] adds the MoE layer; there is only one position for it.
  WhitenedCnn(const WhitenedCnnOptions& options, const ModelContext& context);
  std::vector<PartCost> cost(const CostOptions& options) const override;
  at::Tensor classify(const at::Tensor& features) override;
  // whiten, groups.0 ... and, if there is one, moe: [B,channels,height,width] each.
  std::vector<std::string> tap_names() const override;
  int64_t images_to_fit() const override;

 protected:
  CompiledOutputs compile_steps(engine::ProgramBuilder& builder) const override;
  ModelOutput run(const ModelInput& input) override;
  void fit_to(const at::Tensor& images) override;  // the whitening filters

 private:
  WhitenedCnnOptions options_;
  Conv whiten_{nullptr};
  std::vector<std::shared_ptr<WhitenedGroup>> groups_;
  std::shared_ptr<MapMoe> moe_;
  TorchLinear head_{nullptr};
};

}  // namespace sparsight
