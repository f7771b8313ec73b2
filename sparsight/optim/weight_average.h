// An average of a model's weights over training: an exponential moving average (EMA) or, from some update on, the mean
// of the weights (stochastic weight averaging, SWA; Izmailov et al. 2018, "Averaging Weights Leads to Wider Optima and
// Better Generalization"; densely, with every update counted, Cha et al. 2021, "SWAD").
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/optim/optimizer.h"

namespace sparsight {

// average <- average + share * (weights - average), with the share as a function of the number of previous updates. 1
// copies the weights, 0 leaves the average unchanged.
struct AverageRule {
  std::string name;  // as printed with evaluations: "ema"
  std::function<double(int64_t updates)> share;
};

// average <- d * average + (1 - d) * weights with d = min(decay, (1 + updates) / (10 + updates)), so that the random
// initialisation fades quickly.
AverageRule exponential_average(double decay);

// "swa": the mean of the weights after updates start, start + every, start + 2 every, ... (counted from 0); the weights
// themselves before. Batch norms' statistics are averaged like weights.
AverageRule mean_from(int64_t start, int64_t every);

class WeightAverage {
 public:
  // weights: named parameters and buffers of a model, read at each update and written only by Swap.
  WeightAverage(NamedTensors weights, AverageRule rule);

  // The average of one of the weights, which update() then leaves to the caller; undefined for another tensor, or one
  // that is not floating-point.
  at::Tensor delegate_average(const at::Tensor& weight);
  double share(int64_t updates) const { return rule_.share(updates); }

  void update(int64_t updates);

  const std::string& name() const { return rule_.name; }
  NamedTensors tensors() const;
  void load(const NamedTensors& tensors);

  // Puts the average into the model while it lives.
  class Swap {
   public:
    explicit Swap(WeightAverage* average);  // nullptr: does nothing
    ~Swap();
    Swap(const Swap&) = delete;
    Swap& operator=(const Swap&) = delete;

   private:
    WeightAverage* average_;
  };

 private:
  void exchange();
  NamedTensors weights_, average_;
  std::vector<bool> handed_over_;
  AverageRule rule_;
};

}  // namespace sparsight
