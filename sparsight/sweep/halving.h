// Successive halving (Jamieson and Talwalkar 2016, "Non-stochastic best arm identification and hyperparameter
// optimization"): all settings are trained for a few epochs, the best of them for more, until the last ones are trained
// for all.
#pragma once

#include <cstdint>
#include <vector>

namespace sparsight {

struct Rung {
  int64_t epochs = 0, settings = 0;
};

// Rung r of R has settings / factor^r settings, at least 1, of epochs / factor^(R - 1 - r) epochs. R is the most with a
// whole setting and a whole epoch in each. All arguments are positive, factor is at least 2.
std::vector<Rung> halving_rungs(int64_t settings, int64_t epochs, int64_t factor);

}  // namespace sparsight
