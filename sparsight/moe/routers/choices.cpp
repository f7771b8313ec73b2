#include "sparsight/moe/routers/choices.h"

#include <algorithm>

namespace sparsight {
namespace {

std::string in_evaluation(const std::string& help) { return help + " in evaluation; 0: as in training"; }

}  // namespace

void declare_choices(OptionSet& set, const std::string& name, int64_t* training, int64_t* evaluation,
                     const std::string& help) {
  set.integer(name, training, {1, 65536}, help).live = true;
  declare_eval_choices(set, name, evaluation, help);
}

void declare_eval_choices(OptionSet& set, const std::string& name, int64_t* evaluation, const std::string& help) {
  set.integer("eval_" + name, evaluation, {0, 65536}, in_evaluation(help)).live = true;
}

void declare_eval_choices(OptionSet& set, const std::string& name, double* evaluation, const std::string& help) {
  set.real("eval_" + name, evaluation, {0, 65536}, in_evaluation(help)).live = true;
}

void GroupChoiceOptions::check(int64_t experts) const {
  if (experts % groups != 0)
    fail_usage("[router] groups ", groups, " does not divide [moe] experts ", experts, "; choose a divisor");
  check_choices("k_groups", k_groups, eval_k_groups, groups, "groups");
  check_choices("k", k, eval_k, experts / groups, "experts of a group");
}

void ChoiceOptions::declare(OptionSet& set) { declare_choices(set, "k", &k, &eval_k, "experts per token"); }

void ChoiceOptions::check(int64_t experts) const {
  const int64_t maximum = std::max(k, eval_k);
  if (maximum > experts)
    fail_usage("[router] chooses ", maximum, " experts per token but [moe] experts is ", experts,
               "; lower k or add experts");
}

void FixedChoiceOptions::declare(OptionSet& set) {
  set.integer("k", &k, {1, 65536}, cat("experts per token in training: always ", fixed_));
  declare_eval_choices(set, "k", &eval_k, "experts per token");
}

void FixedChoiceOptions::check(const std::string& router, int64_t experts) const {
  if (k != fixed_)
    fail_usage("[router] k = ", k, ", but ", router, " always chooses ", fixed_, fixed_ == 1 ? " expert" : " experts",
               " per token; remove router.k");
  check_choices("k", fixed_, eval_k, std::max(fixed_, experts), "experts");
}

}  // namespace sparsight
