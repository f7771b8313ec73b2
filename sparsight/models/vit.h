// The vision transformer (Dosovitskiy et al. 2021), dense or with MoE layers in chosen blocks (V-MoE, Riquelme et al.
// 2021). Parameters are named and shaped as in timm's VisionTransformer; an MoE layer's are blocks.N.mlp.router.* and
// blocks.N.mlp.experts.*. Letters: moe/axes.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/models/image_model.h"
#include "sparsight/models/shared_router.h"
#include "sparsight/models/vit_block.h"
#include "sparsight/nn/patch_embedding.h"
#include "sparsight/nn/position_embedding.h"

namespace sparsight {

struct VitOptions {
  std::string size = "custom";
  int64_t width = 128;
  int64_t depth = 6;
  int64_t heads = 4;
  double mlp_ratio = 4;
  Json layer;  // list of tables
  int64_t patch = 4;
  std::vector<int64_t> stem;
  int64_t stem_blocks = 1;
  std::string stem_norm = "group";
  std::string pool = "class";
  bool qkv_bias = true;
  bool pre_logits = false;
  double dropout = 0;
  double hidden_dropout = 0;
  double drop_path = 0;
  bool recompute = false;
  std::string pos_resampling = "bicubic";
  void declare(OptionSet& set);
  int64_t mlp_hidden() const;  // F of the dense MLPs, unless `layer` says otherwise
};

// The width of a named size; `otherwise` for "custom" and names that are no size.
int64_t vit_width(const std::string& size, int64_t otherwise);

// The options with the values of `size` filled in. Raises UsageError if the patch does not divide the image, or heads
// does not divide width.
VitOptions with_preset(VitOptions options, const ImageShape& image);

class Vit : public ImageModel, public HasRouter, public Initialized {
 public:
  // Raises UsageError as with_preset() does.
  Vit(VitOptions options, const ModelContext& context);
  at::Tensor classify(const at::Tensor& features) override;
  // patch_embed [B,P,D] (P = S without the class token), blocks.0 ... [B,S,D], and norm [B,S,D], or fc_norm [B,D] after
  // mean pooling. The features are the class token of norm, or fc_norm.
  std::vector<std::string> tap_names() const override;
  void initialize(const InitRandom& random) override;  // class token N(0, 1e-6²), position embedding N(0, 0.02²)

  int64_t prefix_tokens() const { return options_.pool == "class" ? 1 : 0; }
  PatchGrid grid() const;
  Resampling resampling() const;  // of a position embedding of another grid
  Router* own_router() override { return shared_router_->router(); }
  const std::string& routing_name() const override { return shared_router_->name(); }
  RoutingPolicy& policy() override { return shared_router_->policy(); }
  std::vector<PartCost> cost(const CostOptions& options) const override;
  int64_t freeze(WeightType type) override;

 protected:
  ModelOutput run(const ModelInput& input) override;

 private:
  at::Tensor embed(const ModelInput& input, ModelOutput& out);  // tokens with their positions, [B,S,D]

  VitOptions options_;
  at::Tensor cls_token_;  // [1,1,D]; undefined with mean pooling
  at::Tensor pos_embed_;  // [1,S,D]
  PatchEmbedding patch_embed_{nullptr};
  std::optional<SharedRouter> shared_router_;
  int64_t first_moe_block_ = -1;
  std::vector<std::shared_ptr<VitBlock>> blocks_;
  LayerNorm norm_{nullptr};     // "norm", before selecting the class token, or "fc_norm", after mean pooling
  Linear pre_logits_{nullptr};  // linear layer and tanh between norm and head; or null
  Linear head_{nullptr};
};

}  // namespace sparsight
