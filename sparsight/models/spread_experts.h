// The parameters of routed experts of which each rank has a part (MoeSpec::spread_experts): slices of their first axis,
// that of experts. So are the tensors of an optimiser and of weight averages that belong to them.
#pragma once

#include <map>
#include <string>

#include <torch/nn/module.h>

#include "sparsight/dist/expert_ranks.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {

class SpreadParameters {
 public:
  // Those of the model, none if all of its experts are in this process.
  explicit SpreadParameters(const torch::nn::Module& model);

  bool empty() const { return own_.empty(); }
  const dist::ExpertRanks& ranks() const { return ranks_; }
  // Whether this is the name of such a parameter, or one of its tensors: "ema/<parameter>",
  // "optimizer/<parameter>/exp_avg".
  bool contains(const std::string& name) const { return own_experts(name) > 0; }

  // Whether the tensor of this name has one slice per expert of this rank; a number of steps has none.
  bool is_part(const std::string& name, const at::Tensor& tensor) const;
  // The slices of this rank's experts, where the tensor has those of all experts; else the tensor.
  at::Tensor own_part(const std::string& name, const at::Tensor& tensor) const;

 private:
  int64_t own_experts(const std::string& name) const;  // on this rank; 0: not of such a parameter

  dist::ExpertRanks ranks_;
  std::map<std::string, int64_t> own_;  // parameter -> experts on this rank
};

// Gives spread experts the initial values that they have in one process: nn/init.h has drawn those of a layer with as
// many experts as the rank has. For a moment the rank has all experts of a layer.
void initialize_spread_experts(torch::nn::Module& model, uint64_t seed);

}  // namespace sparsight
