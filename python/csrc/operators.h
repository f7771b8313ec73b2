// Shared by the files that define operators.
#pragma once

#include <optional>
#include <string_view>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/no_second_derivative.h"

namespace sparsight::python {

using at::Tensor;
using at::TensorList;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<at::Tensor>;
using Text = std::string_view;

// The body of an operator. Autocast changes nothing in it. Converts UsageError (a wrong setting) to ValueError; other
// errors become RuntimeError by default.
template <class Run>
auto run_operator(const Run& run) {
  const NoAutocast no_autocast;
  try {
    return run();
  } catch (const UsageError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
}

// Looks up an operator by name, to call it below autograd.
template <class Signature>
auto find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// True if autograd must record a graph. Raises Error for tensors under forward-mode differentiation (torch.func.jvp).
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

// Schemas, kernels for all devices, and autograd functions.
void add_routing_kernels(torch::Library& m);
void add_routing_derivatives(torch::Library& m);
void define_dense_operators(torch::Library& m);
void add_dense_kernels(torch::Library& m);
void add_dense_derivatives(torch::Library& m);

}  // namespace sparsight::python
