// The paper's table of sizes (figures 1 and 3a): ImageNet-1k, patch 32, E = 10, k = 1, L = 2.
#pragma once

#include <vector>

namespace sparsight::mobile_vmoe {

struct PaperSize {
  const char* size;   // blocks x width
  double mflop;       // of both models
  double dense, moe;  // top-1 in percent
};
const std::vector<PaperSize>& paper_sizes();

}  // namespace sparsight::mobile_vmoe
