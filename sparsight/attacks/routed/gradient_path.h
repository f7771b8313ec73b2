// Which way an attack's gradient takes through MoE layers. Routing jumps, so the gradient of a sparse model says
// nothing about experts that a small change would choose; each of these gives the attacker another view of the same
// model. Losses, and whether an image is misclassified, are always those of the model itself.
#pragma once

#include <string>

#include "sparsight/attacks/routed/clean_pass.h"
#include "sparsight/core/options.h"

namespace sparsight {

//   model    that of the model
//   mixture  a smooth substitute: all experts for each token, with the gates softmax(logits / temperature), without
//            capacity. Layers that mix tokens are smooth already and stay as they are
//   experts  only through the experts, with the routing and the gates of the clean image
//   router   only through the gates: the experts get the tokens of the clean image
struct GradientPath {
  std::string through = "model";
  double temperature = 1;
  void declare(OptionSet& set);

  bool is_model() const { return through == "model"; }
  bool needs_clean_pass() const { return through == "experts" || through == "router"; }
  bool needs_clean_tokens() const { return through == "router"; }
};

// What makes a pass take the path; null for that of the model. clean: where the path needs it. row: [B] int64, the
// positions of the pass's images in it. layers: receives the number of MoE layers that the pass has. A pass raises
// Error where a router has no logits for a mixture.
ExpertsHook make_hook(const GradientPath& path, const CleanPass* clean, const at::Tensor& row, int64_t* layers);

}  // namespace sparsight
