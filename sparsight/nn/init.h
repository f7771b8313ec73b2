// Initial values of parameters, from named random streams: they depend only on the seed and the parameter's path and
// shape.
#pragma once

#include <string>

#include <torch/nn/module.h>

#include "sparsight/core/random.h"
#include "sparsight/nn/parameter_memory.h"

namespace sparsight {

// The random streams of a module's initial values. path: of the module in the model, "blocks.0.mlp.fc1".
struct InitRandom {
  uint64_t seed = 0;
  std::string path;
  RandomStream stream(const std::string& parameter) const;
};

// A module that owns parameters (not only through submodules).
class Initialized {
 public:
  virtual ~Initialized() = default;
  virtual void initialize(const InitRandom& random) = 0;
};

// Initialises all parameters of `model`, which are zeros or ones after construction.
void initialize(torch::nn::Module& model, uint64_t seed);

// N(0, std²) in place. Vision transformers use std 0.02 throughout (timm's truncation at ±2 is at 100 standard
// deviations, so it has no effect).
inline constexpr double kVitStd = 0.02;
void init_normal(at::Tensor& parameter, double std, const RandomStream& stream);
// The same truncated at ± 2 std: its standard deviation is 0.88 std.
void init_trunc_normal(at::Tensor& parameter, double std, const RandomStream& stream);
// U(-bound, bound) in place.
void init_uniform(at::Tensor& parameter, double bound, const RandomStream& stream);

}  // namespace sparsight
