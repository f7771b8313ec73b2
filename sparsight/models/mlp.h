// A residual MLP on flattened images: embedding, blocks of norm and MLP, norm, head. A block's MLP may be an MoE layer,
// which then routes whole images. Letters: moe/axes.md.
#pragma once

#include <optional>
#include <vector>

#include "sparsight/models/block_mlp.h"
#include "sparsight/models/image_model.h"
#include "sparsight/models/shared_router.h"
#include "sparsight/nn/norm.h"

namespace sparsight {

struct MlpModelOptions {
  int64_t width = 256;
  int64_t depth = 2;
  double mlp_ratio = 2;
  void declare(OptionSet& set);
};

class MlpBlock : public torch::nn::Module {
 public:
  // `moe`: of a block whose MLP is an MoE layer, else null.
  MlpBlock(const LayerContext& context, const MoeSpec* moe);
  at::Tensor forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out);  // [B,1,D] -> [B,1,D]
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value x) const;
  std::vector<PartCost> cost(const std::string& path, const CostOptions& options, const Router* deciding) const;

 private:
  LayerNorm norm_;
  BlockMlp mlp_;
};

class MlpModel : public ImageModel, public HasRouter {
 public:
  MlpModel(const MlpModelOptions& options, const ModelContext& context);
  at::Tensor classify(const at::Tensor& features) override;
  // embed [B,D], blocks.0 ... [B,1,D], norm [B,D] (the features).
  std::vector<std::string> tap_names() const override;
  Router* own_router() override { return shared_router_->router(); }
  const std::string& routing_name() const override { return shared_router_->name(); }
  RoutingPolicy& policy() override { return shared_router_->policy(); }
  std::vector<PartCost> cost(const CostOptions& options) const override;

 protected:
  CompiledOutputs compile_steps(engine::ProgramBuilder& builder) const override;
  ModelOutput run(const ModelInput& input) override;

 private:
  Linear embed_;
  std::optional<SharedRouter> shared_router_;
  size_t first_moe_block_ = 0;
  std::vector<std::shared_ptr<MlpBlock>> blocks_;
  LayerNorm norm_;
  Linear head_;
};

}  // namespace sparsight
