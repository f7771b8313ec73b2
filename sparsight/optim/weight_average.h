// An exponential moving average (EMA) of a model's weights.
#pragma once

#include "sparsight/optim/optimizer.h"

namespace sparsight {

class WeightAverage {
 public:
  // `weights`: named parameters and buffers of a model; they are read at each update and written by Swap only.
  WeightAverage(NamedTensors weights, double decay);

  // average <- d * average + (1 - d) * weights with d = min(decay, (1 + updates) / (10 + updates)), so that the random
  // start fades quickly.
  void update(int64_t updates);

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
  double decay_;
};

}  // namespace sparsight
