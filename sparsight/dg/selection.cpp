#include "sparsight/dg/selection.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

struct Candidate {
  double validation, accuracy;
};

// Among checkpoints of a run DomainBed takes the first of the best, as max() does. It sorts the hyper-parameters by
// validation and takes the last, so of equal ones that with the highest seed.
std::optional<Candidate> find_first_best(const std::vector<Candidate>& candidates) {
  const auto best = std::ranges::max_element(candidates, {}, &Candidate::validation);
  return best == candidates.end() ? std::nullopt : std::optional(*best);
}

std::optional<Candidate> find_last_best(std::vector<Candidate> candidates) {
  std::ranges::reverse(candidates);
  return find_first_best(candidates);
}

double mean_of_others(const std::vector<double>& accuracy, size_t test_env) {
  double sum = 0;
  for (size_t e = 0; e < accuracy.size(); ++e)
    if (e != test_env) sum += accuracy[e];
  return sum / static_cast<double>(accuracy.size() - 1);
}

}  // namespace

TrialRuns::TrialRuns(const std::vector<const DgResult*>& runs) {
  for (const DgResult* run : runs) {
    std::vector<int64_t> tested = run->name.test_envs;
    std::ranges::sort(tested);
    runs_[std::move(tested)].push_back(run);
  }
  for (auto& [tested, found] : runs_)
    std::ranges::stable_sort(found, {}, [](const DgResult* run) { return run->name.hparams_seed; });
}

const TrialRuns::Runs& TrialRuns::with(std::vector<int64_t> test_envs) const {
  static const Runs kNone;
  std::ranges::sort(test_envs);
  const auto found = runs_.find(test_envs);
  return found == runs_.end() ? kNone : found->second;
}

std::optional<double> TrialRuns::by_training_domains(size_t test_env) const {
  std::vector<Candidate> best;
  for (const DgResult* run : with({static_cast<int64_t>(test_env)})) {
    std::vector<Candidate> steps;
    for (const DgEvaluation& evaluation : run->evaluations)
      if (evaluation.in.size() > 1)
        steps.push_back({mean_of_others(evaluation.out, test_env), evaluation.in[test_env]});
    if (const auto step = find_first_best(steps)) best.push_back(*step);
  }
  const auto chosen = find_last_best(best);
  return chosen ? std::optional(chosen->accuracy) : std::nullopt;
}

std::optional<double> TrialRuns::by_oracle(size_t test_env) const {
  std::vector<Candidate> last;
  for (const DgResult* run : with({static_cast<int64_t>(test_env)}))
    last.push_back({run->evaluations.back().out[test_env], run->evaluations.back().in[test_env]});
  const auto chosen = find_last_best(last);
  return chosen ? std::optional(chosen->accuracy) : std::nullopt;
}

const DgResult* TrialRuns::pair(int64_t t, int64_t v, int64_t hparams_seed) const {
  const auto name_seed = [](const DgResult* run) { return run->name.hparams_seed; };
  const Runs& runs = with({t, v});
  const auto found = std::ranges::lower_bound(runs, hparams_seed, {}, name_seed);
  return found == runs.end() || name_seed(*found) != hparams_seed ? nullptr : *found;
}

std::optional<double> TrialRuns::by_leaving_one_out(size_t test_env) const {
  std::vector<Candidate> candidates;
  const auto t = static_cast<int64_t>(test_env);
  for (const DgResult* run : with({t})) {
    const auto environments = static_cast<int64_t>(run->evaluations.front().in.size());
    std::map<int64_t, std::pair<double, int64_t>> by_step;  // the sum of accuracies on each v, and their number
    bool complete = true;
    for (int64_t v = 0; complete && v < environments; ++v) {
      if (v == t) continue;
      const DgResult* const without_both = pair(t, v, run->name.hparams_seed);
      complete = without_both != nullptr;
      if (!complete) break;
      std::map<int64_t, double> validation;  // the last evaluation of a step counts
      for (const DgEvaluation& evaluation : without_both->evaluations)
        validation[evaluation.step] = evaluation.in[static_cast<size_t>(v)];
      for (const auto& [step, accuracy] : validation) by_step[step].first += accuracy, ++by_step[step].second;
    }
    if (!complete) continue;
    std::vector<Candidate> steps;
    for (const DgEvaluation& evaluation : run->evaluations)
      if (const auto found = by_step.find(evaluation.step);
          found != by_step.end() && found->second.second == environments - 1)
        steps.push_back({found->second.first / static_cast<double>(environments - 1), evaluation.in[test_env]});
    if (const auto step = find_first_best(steps)) candidates.push_back(*step);
  }
  const auto chosen = find_last_best(candidates);
  return chosen ? std::optional(chosen->accuracy) : std::nullopt;
}

std::optional<double> TrialRuns::selected_accuracy(int64_t test_env, SelectionRule rule) const {
  const auto t = static_cast<size_t>(test_env);
  switch (rule) {
    case SelectionRule::training_domains:
      return by_training_domains(t);
    case SelectionRule::leave_one_domain_out:
      return by_leaving_one_out(t);
    default:
      return by_oracle(t);
  }
}

std::vector<const DgResult*> pointers_to(const std::vector<DgResult>& runs) {
  std::vector<const DgResult*> pointers;
  pointers.reserve(runs.size());
  for (const DgResult& run : runs) pointers.push_back(&run);
  return pointers;
}

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
  return TrialRuns(pointers_to(runs)).selected_accuracy(test_env, rule);
}

}  // namespace sparsight
