// How many experts a token-choice router gives each token.
#pragma once

#include "sparsight/core/options.h"

namespace sparsight {

struct ChoiceOptions {
  int64_t k = 2;
  int64_t eval_k = 0;
  void declare(OptionSet& set);

  int64_t of(bool training) const { return training || eval_k == 0 ? k : eval_k; }
  // Raises UsageError where either is above the number of experts.
  void check(int64_t experts) const;
};

}  // namespace sparsight
