// What routers and kinds of experts declare, so that experts of a trained layer can be removed or merged
// (models/prune_experts.h): which of their tensors belong to which expert. Letters: moe/axes.md.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sparsight {

// A parameter or buffer of a router, by its name there, with the axis along which it has one slice per expert.
struct ExpertAxis {
  std::string tensor;
  int64_t axis = 0;
};

// What stays of the routing in evaluation when experts leave that no token chooses.
enum class KeptRouting {
  gates,    // choices and gates: they follow from the logits of the chosen experts alone
  choices,  // choices and the ratios of a token's gates, which are shares of a softmax over all experts
  nothing,  // choices may change too
};

struct RouterRemoval {
  std::string refusal;  // why experts cannot be removed, as what follows "its router ..."; "": they can
  std::vector<ExpertAxis> tensors = {};
  KeptRouting keeps = KeptRouting::nothing;
};

inline RouterRemoval removable(std::vector<ExpertAxis> tensors, KeptRouting keeps) {
  return {"", std::move(tensors), keeps};
}

// The units of a hidden layer of the experts. Exchanging two of them in all of these tensors leaves an expert's
// function as it is.
struct HiddenUnits {
  struct Side {
    std::string tensor;  // [E, ...]
    int64_t axis = 1;    // that of the units
    int64_t parts = 1;   // how often all units follow each other along it: 2 for the two halves of a gated layer
  };
  std::vector<Side> sides;
};

struct ExpertTensors {
  std::string refusal = {};        // why experts cannot be removed; "": they can
  std::string merge_refusal = {};  // why they cannot be merged; "": they can
  bool modules = false;            // expert e is the submodule "e"; else all parameters and buffers are [E, ...]
  std::vector<HiddenUnits> hidden = {};
};

}  // namespace sparsight
