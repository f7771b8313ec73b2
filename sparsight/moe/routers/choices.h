// How many choices a router makes. Each such setting comes as a pair: one for training, and eval_<name>, which replaces
// it in evaluation unless it is 0.
#pragma once

#include <string>

#include "sparsight/core/error.h"
#include "sparsight/core/options.h"

namespace sparsight {

// Declares `name` and eval_<name>.
void declare_choices(OptionSet& set, const std::string& name, int64_t* training, int64_t* evaluation,
                     const std::string& help);

// Declares eval_<name> alone; help says what `name` counts.
void declare_eval_choices(OptionSet& set, const std::string& name, int64_t* evaluation, const std::string& help);
void declare_eval_choices(OptionSet& set, const std::string& name, double* evaluation, const std::string& help);

template <class T>
T select_choices(bool as_in_training, T training, T evaluation) {
  return as_in_training || evaluation == 0 ? training : evaluation;
}

// Raises UsageError where `name` or eval_<name> is above `maximum`. what: "experts", "groups".
template <class T>
void check_choices(const std::string& name, T training, T evaluation, int64_t maximum, const std::string& what) {
  for (const bool in_training : {true, false})
    if (const T value = in_training ? training : evaluation; value > static_cast<T>(maximum))
      fail_usage("[router] ", in_training ? "" : "eval_", name, " = ", value, " is above the ", maximum, " ", what,
                 "; lower it");
}

// For two-level routers.
struct GroupChoiceOptions {
  int64_t groups = 2;
  int64_t k_groups = 2;
  int64_t eval_k_groups = 0;
  int64_t k = 2;  // in each group
  int64_t eval_k = 0;
  // Raises UsageError where groups do not divide the experts, or there are more choices than groups or experts.
  void check(int64_t experts) const;
};

// For token-choice routers.
struct ChoiceOptions {
  int64_t k = 2;
  int64_t eval_k = 0;
  void declare(OptionSet& set);

  int64_t of(bool training) const { return select_choices(training, k, eval_k); }
  // Raises UsageError where either is above the number of experts.
  void check(int64_t experts) const;
};

// For methods with a fixed k in training: k is declared so that router.name alone can be changed, but no other value is
// allowed.
struct FixedChoiceOptions {
  explicit FixedChoiceOptions(int64_t fixed) : k(fixed), fixed_(fixed) {}
  int64_t k;
  int64_t eval_k = 0;
  void declare(OptionSet& set);

  int64_t of(bool training) const { return select_choices(training, k, eval_k); }
  // Raises UsageError, naming the router, if k is another number or eval_k is above the number of experts.
  void check(const std::string& router, int64_t experts) const;

 private:
  int64_t fixed_;
};

}  // namespace sparsight
