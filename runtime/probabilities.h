// What the logits of an image say about its classes.
#pragma once

#include <cstdint>

namespace sparsight::runtime {

// independent: the sigmoid of each logit; else the softmax of all. In fp64, rounded once.
void write_probabilities(const float* logits, int64_t classes, bool independent, float* probabilities);

}  // namespace sparsight::runtime
