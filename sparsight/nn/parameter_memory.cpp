#include "sparsight/nn/parameter_memory.h"

#include <limits>
#include <utility>

#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/core/machine.h"
#include "sparsight/ops/cpu/arena.h"

namespace sparsight {
namespace {

thread_local ParameterBound* bound_in_force = nullptr;
thread_local bool on_meta = false;

at::Tensor meta_parameter(at::IntArrayRef sizes) {
  double elements = 1;
  for (const int64_t size : sizes) elements *= static_cast<double>(size);
  if (elements > 1e18)
    fail("a parameter of shape ", sizes, " is too large for any machine; use smaller layers or experts");
  return at::empty(sizes, at::TensorOptions().dtype(at::kFloat).device(at::kMeta));
}

}  // namespace

ParameterBound::ParameterBound(int64_t bytes, std::string complaint)
    : bytes_left_(static_cast<double>(bytes)), complaint_(std::move(complaint)), outer_(bound_in_force) {
  bound_in_force = this;
}

ParameterBound::~ParameterBound() { bound_in_force = outer_; }

ParameterBound bound_to_free_memory(const std::string& owner) {
  const int64_t memory = available_memory_bytes();
  return {memory > 0 ? memory : std::numeric_limits<int64_t>::max(),
          cat("the parameters of the ", owner, " need more than the ", memory >> 20,
              " MB of free memory; use fewer or smaller layers or experts")};
}

MetaParameters::MetaParameters() : outer_(on_meta) { on_meta = true; }

MetaParameters::~MetaParameters() { on_meta = outer_; }

at::Tensor parameter_zeros(at::IntArrayRef sizes) {
  if (on_meta) return meta_parameter(sizes);
  if (bound_in_force) {
    double bytes = sizeof(float);  // in floating point: sizes from a damaged file may overflow integers
    for (const int64_t size : sizes) bytes *= static_cast<double>(size);
    bound_in_force->bytes_left_ -= bytes;
    if (bound_in_force->bytes_left_ < 0)
      fail(bound_in_force->complaint_, " (the parameter of shape ", sizes, ", ", bytes / (1 << 30),
           " GB, does not fit)");
  }
  return cpu::empty_from_arena(sizes).zero_();
}

}  // namespace sparsight
