// Norms whose output one linear layer alone reads, so that a factor of a channel can move from the one to the other.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

struct NormedLinear {
  std::string tap;                    // the output of the norm, [...,D]: taken beside ImageModel::tap_names()
  at::Tensor norm_weight, norm_bias;  // [D]
  at::Tensor weight;                  // [outputs,D]
};

// A module that has some.
class HasNormedLinears {
 public:
  virtual ~HasNormedLinears() = default;
  virtual std::vector<NormedLinear> normed_linears() = 0;
};

}  // namespace sparsight
