// How evenly the experts of a layer are used, to compare clean with attacked images. The balance of Shazeer et al. 2017
// and V-MoE as numbers, without gradients. Letters: moe/axes.md.
#pragma once

#include <optional>
#include <vector>

#include "sparsight/moe/routing.h"

namespace sparsight {

struct ExpertUsage {
  std::vector<int64_t> count;           // [E] chosen assignments, before capacity
  double entropy = 0;                   // of their shares, in nats: ln E if balanced, 0 if all are one expert's
  double relative_entropy = 0;          // entropy / ln E; 1 for one expert
  std::optional<double> token_entropy;  // mean over tokens of the entropy of softmax(clean logits), in nats; of a
                                        // router with logits
  double importance_cv2 = 0;            // squared CV of the summed softmax of the clean logits; without logits, of the
                                        // summed gates
  double load_cv2 = 0;                  // squared CV of count
  double dropped = 0;                   // share of the chosen assignments that capacity dropped
};

// The routings of one layer, of any number of batches. Padding does not count. Raises Error for none, for different
// numbers of experts and for soft routings.
ExpertUsage expert_usage(const std::vector<Routing>& routings);

}  // namespace sparsight
