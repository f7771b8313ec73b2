// Loads the tensors of a file into a model, by name, and reports what happened to each.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/io/safetensors.h"

namespace sparsight {

// Each entry is a name, with an explanation in brackets if there is something to explain.
struct LoadReport {
  std::vector<std::string> loaded;   // unchanged, or converted to the model's number type
  std::vector<std::string> adapted;  // changed to fit the model, or derived from others
  std::vector<std::string> fresh;    // of the model, kept at their initial values: not in the file, or of another shape
  std::vector<std::string> unused;   // of the file
};

// A tensor changed to fit `target`, with what was done; nothing if that is impossible.
struct AdaptedTensor {
  at::Tensor tensor;
  std::string how;
};
using WeightAdapter = std::function<std::optional<AdaptedTensor>(const std::string& name, const at::Tensor& source,
                                                                 const at::Tensor& target)>;

// A tensor for `name` derived from other tensors of the file, with what was done and which tensors were used; nothing
// if that is impossible.
struct DerivedTensor {
  at::Tensor tensor;
  std::string how;
  std::vector<std::string> used;
};
using WeightDeriver = std::function<std::optional<DerivedTensor>(const std::string& name, const at::Tensor& target,
                                                                 const std::map<std::string, at::Tensor>& file)>;

struct LoadOptions {
  bool strict = false;            // anything but loaded and adapted is an Error
  bool allow_non_finite = false;  // else NaN or infinity in a used tensor is an Error
  WeightAdapter adapt;            // tried if shapes differ
  WeightDeriver derive;           // tried if the file has no tensor of the name
};

// Copies tensors into the parameters and buffers of `module` with the same name. Raises Error, with the module
// unchanged, if `options` demands it or if no tensor fits.
LoadReport load_weights(torch::nn::Module& module, const NamedTensors& tensors, const LoadOptions& options = {});

// Parameters and buffers of `module`; they share its memory.
NamedTensors named_weights(const torch::nn::Module& module);

// "62 tensors loaded, 1 adapted, 2 kept fresh, 0 unused", then a line for each group except the first.
std::string describe(const LoadReport& report);

}  // namespace sparsight
