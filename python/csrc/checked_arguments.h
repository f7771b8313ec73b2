// The one place where tensors of callers enter the operators. Each is checked against its memory, which Python code can
// empty or shrink below what its shape says, and replaced by a view of its own: its shape no longer changes if another
// thread resizes the caller's tensor during the call.
//
//   m.impl("mlp", &Checked<&mlp>::call);
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include "sparsight/core/error.h"

namespace sparsight::python {

// Raises Error if the storage of `x` ends before its last element.
inline void check_storage(const at::Tensor& x) {
  if (!x.has_storage()) fail("an operator got a tensor of ", x.sizes(), " without memory of its own");
  if (x.numel() == 0) return;
  int64_t last = x.storage_offset();  // of its elements, in elements
  for (int64_t d = 0; d < x.dim(); ++d) last += (x.size(d) - 1) * x.stride(d);
  const auto item = static_cast<int64_t>(x.itemsize()), bytes = static_cast<int64_t>(x.storage().nbytes());
  if (last < 0 || last >= bytes / item || x.storage().data() == nullptr)
    fail("a tensor of shape ", x.sizes(), " needs ", (last + 1) * item, " bytes of storage, which has ", bytes,
         ": it was emptied or resized; pass a tensor whose storage is whole");
}

inline at::Tensor checked(const at::Tensor& x) {
  if (!x.defined()) return x;
  const c10::VariableVersion version = x.is_inference() ? c10::VariableVersion() : c10::VariableVersion(0);
  at::Tensor own(x.unsafeGetTensorImpl()->shallow_copy_and_detach(version, /*allow_tensor_metadata_change=*/true));
  check_storage(own);
  return own;
}

inline std::optional<at::Tensor> checked(const std::optional<at::Tensor>& x) {
  return x ? std::optional(checked(*x)) : std::nullopt;
}

inline std::vector<at::Tensor> checked(at::TensorList list) {
  std::vector<at::Tensor> own;
  for (const at::Tensor& x : list) own.push_back(checked(x));
  return own;
}

inline c10::List<std::optional<at::Tensor>> checked(const c10::List<std::optional<at::Tensor>>& list) {
  c10::List<std::optional<at::Tensor>> own;
  for (const std::optional<at::Tensor>& x : list) own.push_back(checked(x));
  return own;
}

// Numbers, texts and lists of numbers.
template <class T>
const T& checked(const T& argument) {
  return argument;
}

template <auto kernel>
struct Checked;

template <class Result, class... Arguments, Result (*kernel)(Arguments...)>
struct Checked<kernel> {
  static Result call(Arguments... arguments) { return kernel(checked(arguments)...); }
};

}  // namespace sparsight::python
