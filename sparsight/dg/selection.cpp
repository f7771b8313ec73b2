#include "sparsight/dg/selection.h"

#include <algorithm>
#include <map>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

struct Candidate {
  double validation, accuracy;
};

// Among checkpoints of a run DomainBed takes the first of the best, as max() does. It sorts the hyper-parameters by
// validation and takes the last, so of equal ones that with the highest seed.
std::optional<Candidate> first_best_of(const std::vector<Candidate>& candidates) {
  const auto best = std::ranges::max_element(candidates, {}, &Candidate::validation);
  return best == candidates.end() ? std::nullopt : std::optional(*best);
}

std::optional<Candidate> last_best_of(std::vector<Candidate> candidates) {
  std::ranges::reverse(candidates);
  return first_best_of(candidates);
}

std::vector<const DgResult*> runs_with(const std::vector<DgResult>& runs, std::vector<int64_t> test_envs) {
  std::ranges::sort(test_envs);
  std::vector<const DgResult*> found;
  for (const DgResult& run : runs)
    if (run.name.test_envs == test_envs) found.push_back(&run);
  std::ranges::sort(found, {}, [](const DgResult* run) { return run->name.hparams_seed; });
  return found;
}

double mean_of_others(const std::vector<double>& accuracy, size_t test_env) {
  double sum = 0;
  for (size_t e = 0; e < accuracy.size(); ++e)
    if (e != test_env) sum += accuracy[e];
  return sum / static_cast<double>(accuracy.size() - 1);
}

std::optional<double> by_training_domains(const std::vector<DgResult>& runs, size_t test_env) {
  std::vector<Candidate> best;
  for (const DgResult* run : runs_with(runs, {static_cast<int64_t>(test_env)})) {
    std::vector<Candidate> steps;
    for (const DgEvaluation& evaluation : run->evaluations)
      if (evaluation.in.size() > 1)
        steps.push_back({mean_of_others(evaluation.out, test_env), evaluation.in[test_env]});
    if (const auto step = first_best_of(steps)) best.push_back(*step);
  }
  const auto chosen = last_best_of(best);
  return chosen ? std::optional(chosen->accuracy) : std::nullopt;
}

std::optional<double> by_oracle(const std::vector<DgResult>& runs, size_t test_env) {
  std::vector<Candidate> last;
  for (const DgResult* run : runs_with(runs, {static_cast<int64_t>(test_env)}))
    last.push_back({run->evaluations.back().out[test_env], run->evaluations.back().in[test_env]});
  const auto chosen = last_best_of(last);
  return chosen ? std::optional(chosen->accuracy) : std::nullopt;
}

// The "in" accuracy of v at each step of the run with {t, v} and these hyper-parameters.
std::optional<std::map<int64_t, double>> validation_on(const std::vector<DgResult>& runs, int64_t t, int64_t v,
                                                       int64_t hparams_seed) {
  for (const DgResult* run : runs_with(runs, {t, v})) {
    if (run->name.hparams_seed != hparams_seed) continue;
    std::map<int64_t, double> by_step;
    for (const DgEvaluation& evaluation : run->evaluations)
      by_step[evaluation.step] = evaluation.in[static_cast<size_t>(v)];
    return by_step;
  }
  return std::nullopt;
}

std::optional<double> by_leaving_one_out(const std::vector<DgResult>& runs, size_t test_env) {
  std::vector<Candidate> candidates;
  const auto t = static_cast<int64_t>(test_env);
  for (const DgResult* run : runs_with(runs, {t})) {
    const auto environments = static_cast<int64_t>(run->evaluations.front().in.size());
    std::vector<std::map<int64_t, double>> validations;
    for (int64_t v = 0; v < environments; ++v)
      if (v != t)
        if (const auto on = validation_on(runs, t, v, run->name.hparams_seed)) validations.push_back(*on);
    if (static_cast<int64_t>(validations.size()) != environments - 1) continue;
    std::vector<Candidate> steps;
    for (const DgEvaluation& evaluation : run->evaluations) {
      double sum = 0;
      bool complete = true;
      for (const auto& by_step : validations) {
        const auto found = by_step.find(evaluation.step);
        complete = complete && found != by_step.end();
        if (complete) sum += found->second;
      }
      if (complete) steps.push_back({sum / static_cast<double>(validations.size()), evaluation.in[test_env]});
    }
    if (const auto step = first_best_of(steps)) candidates.push_back(*step);
  }
  const auto chosen = last_best_of(candidates);
  return chosen ? std::optional(chosen->accuracy) : std::nullopt;
}

}  // namespace

const std::vector<SelectionRule>& selection_rules() {
  static const std::vector<SelectionRule> all{SelectionRule::training_domains, SelectionRule::leave_one_domain_out,
                                              SelectionRule::oracle};
  return all;
}

std::string to_text(SelectionRule rule) {
  switch (rule) {
    case SelectionRule::training_domains:
      return "training-domain validation";
    case SelectionRule::leave_one_domain_out:
      return "leave-one-domain-out";
    default:
      return "oracle";
  }
}

std::optional<double> selected_accuracy(const std::vector<DgResult>& runs, int64_t test_env, SelectionRule rule) {
  const auto t = static_cast<size_t>(test_env);
  switch (rule) {
    case SelectionRule::training_domains:
      return by_training_domains(runs, t);
    case SelectionRule::leave_one_domain_out:
      return by_leaving_one_out(runs, t);
    default:
      return by_oracle(runs, t);
  }
}

}  // namespace sparsight
