// The limits of the machine: the rates of fp32 matrix products and of reading weights.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

#include "sparsight/ops/expert_mlp.h"

namespace sparsight::bench {

double seconds_now();
// The shortest of `rounds` runs.
double shortest(int rounds, const std::function<void()>& run);

// torch's sgemm on all threads: pairs of products [rows,D]x[D,F] and [rows,F]x[F,D] whose operands each thread keeps in
// its cache, with the fastest number of rows.
class Sgemm {
 public:
  Sgemm(int64_t width, int64_t hidden);
  void run() const;
  double flops() const;  // floating-point operations of one run

 private:
  Sgemm(int64_t width, int64_t hidden, int rows);
  int width_, hidden_, rows_;
  at::Tensor x_, h_, y_, w1_, w2_;  // one of each for each thread
};

// Reads the weights (fp32) of the experts that have rows, with a plain loop on all threads.
void read_touched(const ExpertMlpWeights& weights, const at::Tensor& offsets);

}  // namespace sparsight::bench
