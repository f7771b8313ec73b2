// The blocks of a convolutional network, one after the other. Each is dense or, with [router] scope = "model" and its
// number in [moe] blocks, exists once for each expert (expert_block.h). One router decides for all of these, once per
// image, from the mean over positions of the map before the first of them. Letters: moe/axes.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/models/expert_block.h"
#include "sparsight/models/shared_router.h"

namespace sparsight {

class ConvBlocks {
 public:
  // count: how many blocks follow; moe.options.blocks counts them. map: size of the first one's input. Raises
  // UsageError as MoeSpec::layers() does. With a router for each layer all blocks are dense.
  ConvBlocks(const MoeSpec& moe, int64_t count, MapSize map);
  ConvBlocks(const ConvBlocks&) = delete;
  ConvBlocks& operator=(const ConvBlocks&) = delete;

  // Adds the next block as the module `name` of `parent`. path: its path in the model.
  void add(torch::nn::Module& parent, const std::string& name, const std::string& path, const ConvBlockRecipe& recipe);
  // Registers the router as "router" in the model, unless all blocks are dense. Call it after all blocks are added.
  // Raises UsageError for a router that mixes tokens instead of choosing experts.
  void add_router(torch::nn::Module& model);

  using Tap = std::function<void(const at::Tensor& x, const std::string& path)>;
  // x: [B,in,H,W] -> [B,out,H',W']; calls tap(output, path) after each block. Appends the routing to `out`.
  at::Tensor run(at::Tensor x, const ModelInput& input, ModelOutput& out, const Tap& tap);
  // Per image. map: size of the input, set to that of the output.
  std::vector<PartCost> cost(MapSize& map, const CostOptions& options) const;
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value x) const;

  const std::vector<std::string>& paths() const { return paths_; }
  // For HasRouter of the model; router() is null where all blocks are dense.
  Router* router() const { return shared_ ? shared_->router() : nullptr; }
  const std::string& router_name() const { return shared_->name(); }
  RoutingPolicy& policy() { return shared_->policy(); }

 private:
  MoeSpec moe_;
  std::vector<const MoeSpec*> specs_;  // by block: of its experts, or null
  MapSize map_;                        // of the next block's input
  int64_t router_width_ = 0;
  size_t first_routed_ = 0;
  std::vector<std::string> paths_, routed_;  // of all blocks, and of the MoE layers
  struct Block {
    std::shared_ptr<ConvBlock> dense;  // one of them is null
    std::shared_ptr<ExpertBlock> experts;
  };
  std::vector<Block> blocks_;
  std::optional<SharedRouter> shared_;
};

}  // namespace sparsight
