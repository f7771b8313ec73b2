// Mixed precision: bfloat16 matrix products around fp32 weights.
#pragma once

#include <string>

namespace sparsight {

// "fp32", "bf16" or "auto" (where the CPU has bf16 products; elsewhere they are emulated, several times slower).
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
