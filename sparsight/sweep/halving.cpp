#include "sparsight/sweep/halving.h"

#include <utility>

#include "sparsight/core/error.h"

namespace sparsight {

std::vector<Rung> halving_rungs(int64_t settings, int64_t epochs, int64_t factor) {
  SPARSIGHT_CHECK(settings >= 1 && epochs >= 1 && factor >= 2);
  std::vector<Rung> rungs;
  for (int64_t left = settings, share = epochs; left >= 1 && share >= 1; left /= factor, share /= factor)
    rungs.push_back({share, left});
  for (size_t r = 0; r < rungs.size() / 2; ++r) std::swap(rungs[r].epochs, rungs[rungs.size() - 1 - r].epochs);
  return rungs;
}

}  // namespace sparsight
