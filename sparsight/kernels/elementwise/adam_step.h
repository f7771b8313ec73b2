// One step of Adam or AdamW: clipping, weight decay, both moments, bias correction, the update and the average of the
// weights in one pass over memory, which is the limit: 28 bytes per fp32 parameter, 36 with an average.
#pragma once

#include <span>

#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight {

// What the parameters of a step have in common. With gradient G, scaled first by gradient_factor (and, if not
// decoupled, W weight_decay added), in this order:
//   W <- W (1 - lr weight_decay)                                        if decoupled
//   M <- beta1 M + (1 - beta1) G
//   V <- beta2 V + (1 - beta2) G²
//   W <- W - lr (M / (1 - beta1^t)) / (sqrt(V / (1 - beta2^t)) + eps)   t: number of this update, from 1
//   average <- average + average_share (W - average)
// (Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2, with the learning rate in the decay.)
struct AdamStep {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = true;
  double gradient_factor = 1;
  double average_share = 0;  // 0 to 1; 0: averages stay as they are
};

namespace cpu {

struct AdamParameter {
  AdamArrays arrays;
  double updates = 1;  // t
};

// In chunks of a fixed size over all parameters: the same bits for any number of threads.
void adam_step(Threads& threads, std::span<const AdamParameter> parameters, const AdamStep& step);

}  // namespace cpu
}  // namespace sparsight
