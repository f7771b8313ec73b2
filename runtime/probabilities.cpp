#include "runtime/probabilities.h"

#include <algorithm>
#include <cmath>

#include "sparsight/engine/routers/top_k.h"

namespace sparsight::runtime {

void write_probabilities(const float* logits, int64_t classes, bool independent, float* probabilities) {
  if (independent) {
    std::transform(logits, logits + classes, probabilities, engine::sigmoid);
    return;
  }
  const double most = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += std::exp(logits[k] - most);
  for (int64_t k = 0; k < classes; ++k) probabilities[k] = static_cast<float>(std::exp(logits[k] - most) / sum);
}

}  // namespace sparsight::runtime
