// What the MoE layers of a model do for the images as they are: the reference of attacks that change a routing, or that
// keep one part of the layers as it was. Letters: moe/axes.md.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "sparsight/attacks/attacked_model.h"
#include "sparsight/models/routings.h"

namespace sparsight {

// A router's decision.
struct CleanDecision {
  at::Tensor log_probability;  // [B,S,E] log softmax of the clean logits
  at::Tensor member;           // [B,S,E] bool: the chosen experts, before capacity
};

struct CleanPass {
  std::map<std::string, CleanDecision> decisions;  // by Routing::layer, of the routers with logits
  RoutingReplay routings;                          // by path of the MoE layer
  std::map<std::string, at::Tensor> tokens;        // by path: [B,S,D], the input of the experts; empty unless asked for
};

// The images of a batch, and their pass once it is needed. Selections of the batch share it.
class CleanImages {
 public:
  // pixels: [B,...], image: [B] int64 as in AttackBatch.
  CleanImages(at::Tensor pixels, at::Tensor image) : pixels_(std::move(pixels)), image_(std::move(image)) {}

  // Runs the model on all images at the first call. Always of the same model. with_tokens: also CleanPass::tokens.
  const CleanPass& pass(AttackedModel& model, bool with_tokens) const;

 private:
  at::Tensor pixels_, image_;
  mutable std::shared_ptr<const CleanPass> pass_;
  mutable bool has_tokens_ = false;
};

}  // namespace sparsight
