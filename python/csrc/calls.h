// What the operators' entry points share: errors as Python has them, calls below autograd, lists with absent tensors.
#pragma once

#include <string>
#include <vector>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "python/csrc/expert_ops.h"
#include "python/csrc/routing_calls.h"
#include "sparsight/core/error.h"

namespace sparsight::python {

// A wrong setting is a ValueError in Python; other mistakes are RuntimeErrors as they are.
template <class Run>
auto with_python_errors(const Run& run) {
  try {
    return run();
  } catch (const UsageError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
}

inline void no_second_derivative() {
  if (at::GradMode::is_enabled())
    fail("MoE layers have no second derivative; do not create a graph of the backward pass");
}

// An operator by its name, to be called below autograd.
template <class Signature>
auto operator_of(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

inline bool needs_graph(at::TensorList tensors) {
  if (!at::GradMode::is_enabled()) return false;
  for (const at::Tensor& t : tensors)
    if (t.defined() && t.requires_grad()) return true;
  return false;
}

// The inputs of a call in one list, absent ones undefined.
struct Inputs {
  std::vector<at::Tensor> all;
  Inputs& add(const at::Tensor& x) {
    all.push_back(x);
    return *this;
  }
  Inputs& add(const OptionalTensor& x) {
    all.push_back(x.value_or(at::Tensor()));
    return *this;
  }
  Inputs& add(at::TensorList xs) {
    all.insert(all.end(), xs.begin(), xs.end());
    return *this;
  }
};

inline c10::List<OptionalTensor> optional_list(const std::vector<at::Tensor>& tensors) {
  c10::List<OptionalTensor> list;
  for (const at::Tensor& t : tensors) list.push_back(t.defined() ? OptionalTensor(t) : std::nullopt);
  return list;
}

inline std::vector<at::Tensor> tensor_vector(const c10::List<OptionalTensor>& list) {
  std::vector<at::Tensor> tensors;
  for (const OptionalTensor& t : list) tensors.push_back(t.value_or(at::Tensor()));
  return tensors;
}

}  // namespace sparsight::python
