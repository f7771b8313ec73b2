// What bounds the experts' time from below: reading the weights, and the products alone in the fastest library.
// (The arithmetic peak is in bench/limits/peak.h.) Letters: sparsight/moe/axes.md; R rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/rounds.h"
#include "bench/moe/contenders.h"
#include "bench/moe/onednn.h"

namespace sparsight::bench {

// Weights as they lie in memory, with the expert as the first dimension of each tensor.
using StoredWeights = std::vector<at::Tensor>;
StoredWeights stored(const ExpertMlpWeights& weights);
StoredWeights stored(const PackedExperts& packed);
double bytes_per_expert(const StoredWeights& weights);

// Reads the weights of the experts that have rows, with a plain loop on all threads.
void read_touched(const StoredWeights& weights, const at::Tensor& offsets);

// The two products of every expert at the load's numbers of rows, without biases, activation, gather and scatter-add,
// by MKL's sgemm, oneDNN, oneDNN with packed weights, and our kernels.
class Products {
 public:
  Products(const std::vector<Load>& loads, const ExpertMlpWeights& weights);

  static constexpr int kWays = 4;
  static const char* name(int way);  // "MKL", "oneDNN", "oneDNN packed", "ours"
  void run(int way, int load) const;

 private:
  void run_mkl(const Load& load) const;
  void run_onednn(const Load& load, const OnednnExperts& experts) const;
  const std::vector<Load>& loads_;
  ExpertMlpWeights weights_;
  OnednnExperts plain_, packed_;
  at::Tensor x_, h_, out1_, out2_;  // [R,D], [R,F], [R,F], [R,D]: rows that are gathered already, and results
};

}  // namespace sparsight::bench
