// Which checkpoint and hyper-parameters DomainBed reports for a test environment (Gulrajani and Lopez-Paz 2021, section
// 3): a method must not look at the test environment, unless it is the oracle.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/dg/results/results.h"

namespace sparsight {

enum class SelectionRule { training_domains, leave_one_domain_out, oracle };
const std::vector<SelectionRule>& selection_rules();
std::string to_text(SelectionRule rule);  // "training-domain validation"

// The runs of one dataset, algorithm and trial, by the environments that they test: looking for those of a rule does
// not go through all others.
class TrialRuns {
 public:
  explicit TrialRuns(const std::vector<const DgResult*>& runs);  // they must outlive this

  // The accuracy on the "in" images of the test environment, 0 to 1:
  //   training_domains      of {t}: the step with the highest mean "out" accuracy of the others, then the
  //                         hyper-parameters with the highest of these
  //   leave_one_domain_out  the step and hyper-parameters with the highest mean over v of the "in" accuracy of v in the
  //                         run with {t, v}
  //   oracle                the hyper-parameters with the highest "out" accuracy of t at the last step
  // The first of equal steps counts, and the highest seed of equal hyper-parameters, as in DomainBed's collect_results.
  // Null if a run that the rule needs is missing.
  std::optional<double> selected_accuracy(int64_t test_env, SelectionRule rule) const;

 private:
  using Runs = std::vector<const DgResult*>;
  const Runs& with(std::vector<int64_t> test_envs) const;  // by hyper-parameter seed
  std::optional<double> by_training_domains(size_t test_env) const;
  std::optional<double> by_oracle(size_t test_env) const;
  const DgResult* pair(int64_t t, int64_t v, int64_t hparams_seed) const;  // null if it is missing
  std::optional<double> by_leaving_one_out(size_t test_env) const;

  std::map<std::vector<int64_t>, Runs> runs_;
};

// TrialRuns(runs).selected_accuracy(test_env, rule)
std::optional<double> selected_accuracy(const std::vector<DgResult>& runs, int64_t test_env, SelectionRule rule);

std::vector<const DgResult*> pointers_to(const std::vector<DgResult>& runs);

}  // namespace sparsight
