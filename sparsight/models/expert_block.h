// A block of a convolutional network that exists once for each expert, for models in which one router decides for whole
// images ([router] scope = "model"). Expert i of every such block together are column i of the network; an image runs
// through the columns that are chosen for it, and the other weights are not touched. Mobile V-MoE for convolutional
// networks, the future work of Daxberger et al. 2023. Letters: moe/axes.md.
//
//   y = f(shortcut(x) + sum over chosen experts i of gate_i branch_i(x))       equations (1) and (2) of the paper
//
// The shortcut, the identity or a projection where the block changes the shape, is shared by all experts and not gated.
// A block without any shortcut (an inverted residual of stride 2 or with other output channels) is the gated sum
// itself: with gates near 1/E its output shrinks by as much, until the next batch norm scales it up again. Choose
// blocks with a shortcut where that matters, or [moe] gates = "sum_to_one".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sparsight/models/block_mlp.h"
#include "sparsight/moe/experts/block_experts.h"

namespace sparsight {

enum class Shortcut { none, identity, projection };

// A block as it is made, dense or in experts.
struct ConvBlockRecipe {
  int64_t in = 0, out = 0;  // channels
  int64_t stride = 1;
  Shortcut shortcut = Shortcut::identity;
  bool relu = false;  // f of the equation
  // The dense block or, with `branch`, only what it adds to its shortcut.
  std::function<std::shared_ptr<ConvBlock>(bool branch)> make;
  // The convolution of Shortcut::projection, with the name that its parameters have in the dense block.
  std::function<std::shared_ptr<ConvBlock>()> projection = {};
  std::string projection_name = {};

  MapSize output(MapSize input) const;  // of the block
};

class ExpertBlock : public torch::nn::Module {
 public:
  // path: the block's, "features.16". map: size of its input. Raises UsageError where [moe] hidden or shared_hidden is
  // set: an expert has the widths of its block.
  ExpertBlock(const ConvBlockRecipe& recipe, const MoeSpec& moe, const std::string& path, MapSize map);

  // input: with the routing for path(), one token per image.
  at::Tensor forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out);
  // Per image, for the model-wide router `deciding`. map: size of the input, set to that of the output.
  std::vector<PartCost> cost(const std::string& path, MapSize& map, const CostOptions& options,
                             const Router& deciding) const;
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value x) const;
  const std::string& path() const { return moe_->path(); }  // of the MoE layer: "features.16.moe"

 private:
  Shortcut shortcut_;
  bool relu_;
  MapShape in_, out_;
  std::string projection_name_;
  std::shared_ptr<ConvBlock> projection_;  // null without
  std::shared_ptr<MoeLayer> moe_;          // moe, whose experts are BlockExperts
};

}  // namespace sparsight
