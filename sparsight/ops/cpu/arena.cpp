#include "sparsight/ops/cpu/arena.h"

#include <memory>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>

namespace sparsight::cpu {

at::Tensor empty_from_arena(at::IntArrayRef sizes) {
  const size_t bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * sizeof(float);
  if (bytes < kSmallArray) return at::empty(sizes, at::kFloat);
  auto array = std::make_shared<ArenaArray>(bytes);
  void* const data = array->data();
  return at::from_blob(
      data, sizes, [array = std::move(array)](void*) mutable { array.reset(); }, at::kFloat);
}

}  // namespace sparsight::cpu
