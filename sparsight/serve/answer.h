// What a model says of one image, copied out of the session that computed it. Letters: moe/axes.md; K classes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sparsight/engine/prediction.h"
#include "sparsight/engine/program.h"

namespace sparsight::serve {

using ExpertGate = std::pair<int64_t, float>;

struct LayerAnswer {
  std::string layer = {};                            // "blocks.3.mlp"
  int64_t experts = 0;                               // E
  TokenLayout layout;                                // of the image's tokens; images is 1
  bool mixes_tokens = false;                         // a soft router: no token has experts of its own
  std::vector<int64_t> counts;                       // [E]: assignments of each expert that capacity kept
  std::vector<std::vector<ExpertGate>> chosen = {};  // [S]: of each token, those that were kept; empty unless wanted
  std::optional<RoutedSuperClass> super_class = {};  // of guided routers
};

struct ImageAnswer {
  std::string problem = {};          // one line instead of an answer; "" for an answer
  std::vector<float> logits = {};    // [K]
  std::vector<float> features = {};  // [D]; empty unless wanted
  std::vector<LayerAnswer> layers = {};
};

struct WantedParts {
  bool features = false, chosen = false;
};

// The answer to image number `image` of a batch of `images`.
ImageAnswer copy_answer(const engine::Program& program, const engine::Answer& answer, int64_t image, int64_t images,
                        const WantedParts& wanted);

// [K] in double: softmax of the logits, or the sigmoid of each.
std::vector<double> class_probabilities(const std::vector<float>& logits, bool sigmoid);

}  // namespace sparsight::serve
