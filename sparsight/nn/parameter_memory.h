// Bounds the memory of a model's parameters while it is built, so that a damaged checkpoint, or one zero too many in a
// configuration, is an error and does not exhaust the machine's memory.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace sparsight {

// While it lives, parameters created on this thread may take `bytes` in total. complaint: start of the error if they
// take more; the parameter that did not fit follows. The innermost bound applies.
class ParameterBound {
 public:
  ParameterBound(int64_t bytes, std::string complaint);
  ~ParameterBound();
  ParameterBound(const ParameterBound&) = delete;
  ParameterBound& operator=(const ParameterBound&) = delete;

 private:
  friend at::Tensor parameter_zeros(at::IntArrayRef sizes);
  double bytes_left_;
  std::string complaint_;
  ParameterBound* outer_;
};

// Bounds by the memory that is free now. owner: what has the parameters, "model".
ParameterBound bound_to_free_memory(const std::string& owner);

// While it lives, parameters created on this thread are on the meta device: they have shapes but no memory, so that the
// cost of a model of any size can be computed. Such a model cannot be initialised, loaded or run.
class MetaParameters {
 public:
  MetaParameters();
  ~MetaParameters();
  MetaParameters(const MetaParameters&) = delete;
  MetaParameters& operator=(const MetaParameters&) = delete;

 private:
  bool outer_;
};

// A new fp32 parameter, 0 until initialize(); in huge pages, which the experts' kernels read faster. Raises Error if it
// exceeds the current bound.
at::Tensor parameter_zeros(at::IntArrayRef sizes);

}  // namespace sparsight
