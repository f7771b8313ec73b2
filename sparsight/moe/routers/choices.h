// How many experts a token-choice router gives each token.
#pragma once

#include <string>

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

// Where the method itself says how many: k is declared so that router.name can be changed alone, and may say nothing
// else.
struct FixedChoiceOptions {
  explicit FixedChoiceOptions(int64_t fixed) : k(fixed), fixed_(fixed) {}
  int64_t k;
  void declare(OptionSet& set);
  // Raises UsageError, naming the router, where k is another number.
  void check(const std::string& router) const;

 private:
  int64_t fixed_;
};

}  // namespace sparsight
