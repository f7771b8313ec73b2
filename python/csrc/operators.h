// What the files that define operators share.
#pragma once

#include <optional>
#include <string_view>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/no_second_derivative.h"

namespace sparsight::python {

using at::Tensor;
using at::TensorList;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<at::Tensor>;
using Text = std::string_view;

// A wrong setting is a ValueError in Python; other mistakes are RuntimeErrors as they are.
template <class Run>
auto with_python_errors(const Run& run) {
  try {
    return run();
  } catch (const UsageError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
}

// An operator by its name, to be called below autograd.
template <class Signature>
auto operator_of(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// Whether a graph is wanted. Raises Error for what forward-mode differentiation (torch.func.jvp) runs on.
inline bool needs_graph(TensorList tensors) {
  for (const Tensor& t : tensors)
    if (t.defined() && t._fw_grad(/*level=*/0).defined())
      fail("MoE layers have no forward-mode derivative; use reverse mode");
  if (!at::GradMode::is_enabled()) return false;
  for (const Tensor& t : tensors)
    if (t.defined() && t.requires_grad()) return true;
  return false;
}

inline OptionalTensor optional(const Tensor& t) { return t.defined() ? OptionalTensor(t) : std::nullopt; }

// Kernels for every device, and what runs above them where a graph is wanted.
void add_routing_kernels(torch::Library& m);
void add_routing_derivatives(torch::Library& m);

}  // namespace sparsight::python
