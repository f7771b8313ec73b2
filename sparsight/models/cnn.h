// A small residual CNN: stem, stages of 3x3 blocks with group norm, an optional MoE layer on the last feature map,
// global average pooling, head. With group norm an image's output does not depend on the rest of its batch. With
// [router] scope = "model" blocks exist once for each expert instead (conv_blocks.h). Letters: moe/axes.md.
#pragma once

#include <optional>
#include <vector>

#include "sparsight/models/conv_blocks.h"
#include "sparsight/models/image_model.h"
#include "sparsight/models/map_moe.h"
#include "sparsight/nn/residual_block.h"

namespace sparsight {

struct CnnOptions {
  std::vector<int64_t> widths = {32, 64, 128};
  int64_t blocks = 1;
  void declare(OptionSet& set);
};

class Cnn : public ImageModel, public HasRouter {
 public:
  // [moe] blocks = [0] or [-1] adds the MoE layer; there is only one position for it. With [router] scope = "model"
  // they count the residual blocks.
  Cnn(const CnnOptions& options, const ModelContext& context);
  std::vector<PartCost> cost(const CostOptions& options) const override;
  at::Tensor classify(const at::Tensor& features) override;
  // stem_norm, blocks.0 ... and, if there is one, moe: [B,channels,height,width] each.
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

  Conv stem_{nullptr};
  GroupNorm stem_norm_{nullptr};
  std::optional<ConvBlocks> blocks_;
  std::shared_ptr<MapMoe> moe_;
  Linear head_{nullptr};
};

}  // namespace sparsight
