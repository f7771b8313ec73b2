#include "sparsight/moe/routers/choices.h"

#include <algorithm>

#include "sparsight/core/error.h"

namespace sparsight {

void ChoiceOptions::declare(OptionSet& set) {
  set.integer("k", &k, {1, 65536}, "experts per token");
  set.integer("eval_k", &eval_k, {0, 65536}, "experts per token in evaluation; 0: as in training");
}

void ChoiceOptions::check(int64_t experts) const {
  const int64_t most = std::max(k, eval_k);
  if (most > experts)
    fail_usage("[router] chooses ", most, " experts per token but [moe] experts is ", experts,
               "; lower k or add experts");
}

void FixedChoiceOptions::declare(OptionSet& set) {
  set.integer("k", &k, {1, 65536}, cat("experts per token: always ", fixed_));
}

void FixedChoiceOptions::check(const std::string& router) const {
  if (k != fixed_)
    fail_usage("[router] k = ", k, ", but ", router, " always chooses ", fixed_, fixed_ == 1 ? " expert" : " experts",
               " per token; remove router.k");
}

}  // namespace sparsight
