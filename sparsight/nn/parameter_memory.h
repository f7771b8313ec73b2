// Bounds the memory that the parameters of a model under construction may take, so that a damaged checkpoint, or one
// nought too many in a configuration, is an error and not the end of the machine's memory.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace sparsight {

// While it lives, parameters made on this thread may take `bytes` together; `complaint` is the error where they take
// more, followed by the one that did not fit. The innermost bound holds.
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

// By the memory that is free now. owner: "model", what the parameters are of.
ParameterBound bound_to_free_memory(const std::string& owner);

// While it lives, parameters made on this thread are on the meta device: they have shapes and no memory, so that a
// model of any size can be built to ask what it costs. It cannot be initialised, loaded or run.
class MetaParameters {
 public:
  MetaParameters();
  ~MetaParameters();
  MetaParameters(const MetaParameters&) = delete;
  MetaParameters& operator=(const MetaParameters&) = delete;

 private:
  bool outer_;
};

// A new parameter's fp32 values, 0 until initialize(); in large pages, which the experts' kernels read faster. Raises
// Error where the bound in force does not allow them.
at::Tensor parameter_zeros(at::IntArrayRef sizes);

}  // namespace sparsight
