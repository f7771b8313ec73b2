#include "sparsight/dg/check_runs.h"

#include <map>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/data/domainbed/domainbed.h"

namespace sparsight {

int64_t environments_of_set(const DgRun& run) {
  if (const int64_t known = domain_set(run.set).environments; known > 0) return known;
  static std::map<std::pair<std::string, std::string>, int64_t> counted;
  int64_t& count = counted[{run.set, run.root}];
  if (count == 0) {
    DomainBedOptions options;
    options.set = run.set, options.root = run.root;
    count = std::ssize(domainbed_environments(options, 0)->info().domains);
  }
  return count;
}

void check_run(const DgRun& run, int64_t environments, const AlgorithmFacts& facts, std::set<std::string>& warned) {
  const int64_t tested = std::ssize(run.test_envs), training = environments - tested;
  for (const int64_t environment : run.test_envs)
    if (environment < 0 || environment >= environments)
      fail_usage("test environment ", environment, ": ", run.set, " has the environments 0 to ", environments - 1);
  if (tested == 0) fail_usage("no test environment is named; give one or more with --test-envs, such as --test-envs 0");
  if (training < 1) fail_usage("every environment of ", run.set, " is tested; leave at least one to train on");
  if (training < facts.domains)
    fail_usage("algorithm ", run.algorithm, " needs at least ", facts.domains, " training environments; with ", tested,
               " of ", environments, " tested there ", training == 1 ? "is " : "are ", training,
               "; test fewer (dg sweep: --no-pairs), or choose another algorithm");
  if (training < facts.compares && warned.insert(run.algorithm).second)
    log_warning("algorithm ", run.algorithm, " compares training environments; where ", training,
                " is left there is nothing to compare, and it trains as erm, as in DomainBed");
}

void check_runs(const DgRunList& runs) {
  constexpr int64_t kRandomChoice = 1;
  std::set<std::string> warned;
  for (const auto& block : runs.blocks()) {
    // What a configuration may be refused for does not depend on which environments are tested.
    std::set<std::pair<int64_t, size_t>> checked;  // hyper-parameter seeds and numbers of tested environments
    const int64_t trial = block.at(0).trial_seed, hparams = block.at(0).hparams_seed;
    for (size_t i = 0; i < block.count; ++i) {
      const DgRun run = block.at(i);
      if (run.trial_seed != trial || run.hparams_seed > hparams + kRandomChoice) break;
      if (checked.emplace(run.hparams_seed, run.test_envs.size()).second) dg_config(run);
      check_run(run, environments_of_set(run), algorithms().facts(run.algorithm), warned);
    }
  }
}

}  // namespace sparsight
