// The mixture-of-experts layer: router, experts, combination, losses. Letters: moe/axes.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/moe/experts.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/moe_spec.h"
#include "sparsight/moe/router.h"

namespace sparsight {

// Where a layer stands in a model.
struct MoePlace {
  std::string path;        // "blocks.3.mlp": names the layer's routings and random streams
  int64_t width = 0;       // D
  int64_t mlp_hidden = 0;  // hidden width of the MLP that the layer replaces: F unless [moe] hidden says otherwise
};

struct MoeOutput {
  at::Tensor tokens;  // [N,D]
  Routing routing;
  std::vector<NamedLoss> losses;  // while training
};

class MoeLayer : public torch::nn::Module {
 public:
  MoeLayer(const MoeSpec& spec, const MoePlace& place);

  // tokens: [N,D], N = layout.images * layout.per_image. Tokens of an empty pool give an empty output.
  MoeOutput forward(const at::Tensor& tokens, const TokenLayout& layout, const StepRandom& random);

 private:
  std::string path_;
  std::shared_ptr<Router> router_;
  std::shared_ptr<Experts> experts_;
  LossOptions losses_;
};

}  // namespace sparsight
