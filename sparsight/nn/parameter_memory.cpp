#include "sparsight/nn/parameter_memory.h"

#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/pool.h"

namespace sparsight {
namespace {

thread_local ParameterBound* bound_in_force = nullptr;

}  // namespace

ParameterBound::ParameterBound(int64_t bytes, std::string complaint)
    : bytes_left_(static_cast<double>(bytes)), complaint_(std::move(complaint)), outer_(bound_in_force) {
  bound_in_force = this;
}

ParameterBound::~ParameterBound() { bound_in_force = outer_; }

at::Tensor parameter_zeros(at::IntArrayRef sizes) {
  if (bound_in_force) {
    double bytes = sizeof(float);  // in floating point: sizes from a damaged file may overflow integers
    for (const int64_t size : sizes) bytes *= static_cast<double>(size);
    bound_in_force->bytes_left_ -= bytes;
    if (bound_in_force->bytes_left_ < 0) fail(bound_in_force->complaint_);
  }
  return cpu::empty_from_pool(sizes).zero_();
}

}  // namespace sparsight
