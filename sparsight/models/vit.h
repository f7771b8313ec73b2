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
#include "sparsight/nn/attention_pool.h"
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
  bool qk_norm = false;
  bool distilled = false;
  bool pre_logits = false;
  double layer_scale = 0;
  int64_t reg_tokens = 0;
  bool pre_norm = false;
  bool no_embed_class = false;
  double norm_eps = LayerNormImpl::kEpsilon;
  double dropout = 0;
  double hidden_dropout = 0;
  double drop_path = 0;
  bool recompute = false;
  std::string pos_resampling = "bicubic";
  void declare(OptionSet& set);
  static std::vector<NamedSettings> variants();  // published sizes with the patches that they were published with
  int64_t mlp_hidden() const;                    // F of the dense MLPs, unless `layer` says otherwise
};

// The width of a named size; `otherwise` for "custom" and names that are no size.
int64_t vit_width(const std::string& size, int64_t otherwise);

// The heads of the published size of this width and depth; 0 if there is none.
int64_t vit_heads(int64_t width, int64_t depth);

// The options with the values of `size` filled in. Raises UsageError if the patch does not divide the image, stem
// does not fit the patch, heads does not divide width, or distilled is set without pool = "class" or with pre_logits.
VitOptions with_preset(VitOptions options, const ImageShape& image);

class Vit : public ImageModel, public HasRouter, public Initialized {
 public:
  // Raises UsageError as with_preset() does.
  Vit(VitOptions options, const ModelContext& context);
  at::Tensor classify(const at::Tensor& features) override;
  // patch_embed [B,P,D] (P = S without class and register tokens), blocks.0 ... [B,S,D], and norm [B,S,D], or fc_norm
  // [B,D] after mean pooling, or norm and attn_pool [B,D]. The features are the class token of norm, with a
  // distillation token both [B,2D], or fc_norm, or attn_pool; or pre_logits [B,D], a further output, of one of these.
  std::vector<std::string> tap_names() const override;
  // Class and register tokens N(0, 1e-6²), distillation token and position embedding N(0, 0.02²).
  void initialize(const InitRandom& random) override;

  // Class, distillation and register tokens, in this order.
  int64_t prefix_tokens() const {
    return (has_class_token() ? 1 : 0) + (options_.distilled ? 1 : 0) + options_.reg_tokens;
  }
  // How many of them have a position, and so a row of the position embedding before those of the patches.
  int64_t embedded_prefix() const { return options_.no_embed_class ? 0 : prefix_tokens(); }
  PatchGrid grid() const;
  Resampling resampling() const;  // of a position embedding of another grid
  Router* own_router() override { return shared_router_->router(); }
  const std::string& routing_name() const override { return shared_router_->name(); }
  RoutingPolicy& policy() override { return shared_router_->policy(); }
  std::vector<PartCost> cost(const CostOptions& options) const override;

 protected:
  CompiledOutputs compile_steps(engine::ProgramBuilder& builder) const override;
  ModelOutput run(const ModelInput& input) override;

 private:
  bool has_class_token() const { return options_.pool == "class"; }
  // The norm of all tokens, or of their mean.
  const char* norm_name() const { return options_.pool == "mean" ? "fc_norm" : "norm"; }
  int64_t head_tokens() const { return options_.distilled ? 2 : 1; }  // that the heads read, with a class token
  CompiledOutputs compile_head(engine::ProgramBuilder& builder, engine::Value x) const;
  at::Tensor embed(const ModelInput& input, ModelOutput& out);  // tokens with their positions, [B,S,D]
  // The features of the last block's tokens, [B,S,D] or those that the head reads.
  at::Tensor pool_tokens(const at::Tensor& x, int64_t prefix, const ModelInput& input, ModelOutput& out);
  // Class, distillation and register tokens, with positions where they have any, [1,prefix_tokens(),D].
  at::Tensor prefix() const;

  VitOptions options_;
  at::Tensor cls_token_;   // [1,1,D]; undefined without class token
  at::Tensor dist_token_;  // [1,1,D]; undefined without distillation token
  at::Tensor reg_token_;   // [1,R,D]; undefined without registers
  at::Tensor pos_embed_;   // [1,embedded_prefix() + P,D]
  PatchEmbedding patch_embed_{nullptr};
  LayerNorm norm_pre_{nullptr};  // of the embedded tokens; or null
  std::optional<SharedRouter> shared_router_;
  int64_t first_moe_block_ = -1;
  std::vector<std::shared_ptr<VitBlock>> blocks_;
  // "norm", before selecting the class token or attention pooling, or "fc_norm", after mean pooling.
  LayerNorm norm_{nullptr};
  AttentionPool attn_pool_{nullptr};           // of the normalised patch tokens; or null
  Linear pre_logits_{nullptr};                 // linear layer and tanh between norm and head; or null
  Linear head_{nullptr}, head_dist_{nullptr};  // head_dist: of the distillation token; or null
};

}  // namespace sparsight
