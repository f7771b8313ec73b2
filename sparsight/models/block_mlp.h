// The place in a block where an MLP or an MoE layer stands. Letters: moe/axes.md.
#pragma once

#include <memory>

#include "sparsight/models/model_input.h"
#include "sparsight/models/model_output.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/mlp.h"

namespace sparsight {

// What a layer is told of the tokens of images. Raises Error where something given for each token has another shape.
RoutingContext routing_context(const ImageInfo& info, const TokenLayout& layout);

// Appends a decision and its losses.
void append_routing(Routing routing, ModelOutput& out);

// Runs an MoE layer on tokens [N,D]: by the routing that `input` has for it, else by its own, which is appended to
// `out`. Returns the layer's tokens and the routing that was used.
MoeOutput run_moe(MoeLayer& layer, const at::Tensor& tokens, const TokenLayout& layout, const ModelInput& input,
                  ModelOutput& out);

class BlockMlp {
 public:
  // Registers the layer as "mlp" in `owner`. With `moe` it is an MoE layer, whose place is `place`.
  BlockMlp(torch::nn::Module& owner, const LayerContext& place, const MoeSpec* moe);

  // x: [B,S,D]. Returns [B,S,D]; an MoE layer appends its routing and losses to `out`. Raises Error where what `input`
  // says of tokens has not the shape [B,S].
  at::Tensor forward(const at::Tensor& x, TokenLayout layout, const ModelInput& input, ModelOutput& out);

  // Per image. path: of the MLP, as parameters are named. deciding: the model's router, where there is one.
  std::vector<PartCost> cost(const std::string& path, const TokenLayout& layout, const CostOptions& options,
                             const Router* deciding) const;

 private:
  Mlp mlp_{nullptr};
  std::shared_ptr<MoeLayer> moe_;
};

}  // namespace sparsight
