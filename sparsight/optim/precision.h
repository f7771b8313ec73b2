// Mixed precision: bfloat16 matrix products around fp32 weights. On CPUs whose level multiplies bf16 the kernels of
// ops/ round operands and keep every tensor in fp32 (ops/product_type.h); what they do not compute is torch's autocast.
#pragma once

#include <string>

namespace sparsight {

// precision: "fp32", "bf16" or "auto" (bf16 if the CPU has bf16 instructions; emulated it is several times slower).
bool use_bf16(const std::string& precision);

// Switches torch's CPU autocast on while it lives (if `enabled`).
class AutocastScope {
 public:
  explicit AutocastScope(bool enabled);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool enabled_;
};

}  // namespace sparsight
