// Mixed precision: bfloat16 matrix products around fp32 weights.
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
