// Routers with noise use it in training; this option enables it in evaluation too.
#pragma once

#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

struct EvalNoiseOptions {
  bool eval_noise = false;
  void declare(OptionSet& set, const std::string& help = "use the noise in evaluation too") {
    set.flag("eval_noise", &eval_noise, help);
  }
  bool samples(bool training) const { return training || eval_noise; }
};

}  // namespace sparsight
