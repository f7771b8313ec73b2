// The MLP of a block: dense, or an MoE layer. Letters: moe/axes.md.
#pragma once

#include <memory>
#include <optional>

#include "sparsight/models/model_input.h"
#include "sparsight/models/model_output.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/mlp.h"

namespace sparsight {

// A layer's context, from that of the images. Raises Error where a per-token tensor has the wrong shape.
RoutingContext routing_context(const ImageInfo& info, const TokenLayout& layout);

// Appends a routing and its losses.
void append_routing(Routing routing, ModelOutput& out);

// Runs an MoE layer on tokens [N,D], with the routing in `input` if there is one for the layer, else with the layer's
// own. Either is appended to `out`, unless a model-wide router has done so. Returns the tokens, [N,D], and the routing
// used. With `read`, experts compute only the first `read` tokens of each image; the others' output is unspecified.
MoeOutput run_moe(MoeLayer& layer, const at::Tensor& tokens, const TokenLayout& layout, const ModelInput& input,
                  ModelOutput& out, std::optional<int64_t> read = {});

class BlockMlp {
 public:
  // Registers the layer as "mlp" in `owner`. With `moe` it is an MoE layer.
  BlockMlp(torch::nn::Module& owner, const LayerContext& context, const MoeSpec* moe);

  // x: [B,S,D]. Returns [B,S,D], or [B,read,D], the first tokens of each image; an MoE layer appends its routing and
  // losses, of all tokens, to `out`. Raises Error where a per-token tensor in `input` is not [B,S].
  at::Tensor forward(const at::Tensor& x, TokenLayout layout, const ModelInput& input, ModelOutput& out,
                     std::optional<int64_t> read = {});

  // Adds residual + factor * forward(tokens) to a program (MoeLayer::compile).
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value tokens, engine::Value residual,
                        const at::Tensor& factor = {}, std::optional<int64_t> read = {}) const;

  // Null for an MoE layer.
  Mlp dense() const { return mlp_; }

  // Per image, of `read` outputs (default: all). path: parameter prefix of the MLP. deciding: the model-wide router, or
  // null.
  std::vector<PartCost> cost(const std::string& path, const TokenLayout& layout, const CostOptions& options,
                             const Router* deciding, std::optional<int64_t> read = {}) const;

 private:
  Mlp mlp_{nullptr};
  std::shared_ptr<MoeLayer> moe_;
};

}  // namespace sparsight
