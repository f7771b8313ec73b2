// Mixed precision: bfloat16 matrix products around fp32 weights.
#pragma once

#include <string>

namespace sparsight {

// True where bf16 products run natively (AVX-512 BF16 or AMX); elsewhere they are emulated, several times slower.
bool cpu_has_native_bf16();

// "fp32", "bf16" or "auto" -> whether to use bf16 here.
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
