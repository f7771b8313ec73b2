// The names of experts' tensors: those of all experts of a layer in one tensor, and of each expert by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sparsight {

// "blocks.1.mlp.experts." and "w1", of "blocks.1.mlp.experts.w1".
struct ExpertTensorName {
  std::string layer, rest;
  std::string of_expert(int64_t expert) const { return layer + std::to_string(expert) + "." + rest; }
  std::string of_all() const { return layer + rest; }
  // "blocks.1.mlp.experts." also of "training/ema/blocks.1.mlp.experts.w1".
  std::string experts_path() const { return layer.substr(layer.rfind('/') + 1); }
};

// Nothing for any other name.
std::optional<ExpertTensorName> parse_stacked_name(const std::string& name);

struct SingleExpertName {
  ExpertTensorName tensor;
  int64_t expert = 0;
};
// For example "blocks.1.mlp.experts.3.w1".
std::optional<SingleExpertName> parse_single_name(const std::string& name);

}  // namespace sparsight
