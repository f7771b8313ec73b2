#include "runtime/probabilities.h"

#include <algorithm>
#include <cmath>

namespace sparsight::runtime {

void write_probabilities(const float* logits, int64_t classes, bool independent, float* probabilities) {
  if (independent) {
    for (int64_t k = 0; k < classes; ++k)
      probabilities[k] = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logits[k]))));
    return;
  }
  const double most = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += std::exp(logits[k] - most);
  for (int64_t k = 0; k < classes; ++k) probabilities[k] = static_cast<float>(std::exp(logits[k] - most) / sum);
}

}  // namespace sparsight::runtime
