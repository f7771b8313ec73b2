#include "sparsight/optim/precision.h"

#include <ATen/autocast_mode.h>

#include "sparsight/core/machine.h"

namespace sparsight {

bool use_bf16(const std::string& precision) {
  return precision == "bf16" || (precision == "auto" && has_fast_bfloat16());
}

AutocastScope::AutocastScope(bool enabled) : enabled_(enabled) {
  if (!enabled_) return;
  at::autocast::increment_nesting();
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
}

AutocastScope::~AutocastScope() {
  if (!enabled_) return;
  at::autocast::set_autocast_enabled(at::kCPU, false);
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

}  // namespace sparsight
