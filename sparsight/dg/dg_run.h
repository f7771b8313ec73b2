// One run of DomainBed's protocol: a training run whose configuration follows from a few names and seeds.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/lazy_list.h"
#include "sparsight/core/options.h"
#include "sparsight/dg/dg_models.h"
#include "sparsight/dg/hyperparameters.h"

namespace sparsight {

struct DgRun {
  std::string set = "rotated_mnist";  // domainbed_names()
  std::string root;                   // its folder, or ""
  std::string algorithm = "erm";
  std::string model;  // a name of dg_models(); "": mnist_cnn for small images, else resnet50
  std::vector<int64_t> test_envs = {0};
  int64_t trial_seed = 0, hparams_seed = 0;
  int64_t steps = 0;       // 0: 5001, as published
  int64_t eval_every = 0;  // 0: as published, 300 or 100; 1000 for domain_net
  int64_t image_size = 224;
  bool single_source = false;               // of a comparison that trains on each environment alone
  std::vector<std::string> overrides = {};  // "section.key=value", after everything else
  // After them; where one names another component, settings that it does not have are left out.
  std::vector<std::string> variation = {};
};

// Runs as a sweep lists them. Those of one block differ in test environments, trial and hyper-parameter seed only; the
// test environments change fastest, then the hyper-parameter seed.
using DgRunList = LazyList<DgRun>;

// DomainBed's seed of the run: a hash of dataset and algorithm by its names ("PACS", "ERM"), test environments and
// seeds.
uint32_t run_seed(const DgRun& run);

// The resolved configuration. Raises UsageError for names that do not exist, and for a test environment named twice.
Json dg_config(const DgRun& run);

const DgModel& dg_model(const DgRun& run);
// Their values are what the run trains with unless overrides replace them.
std::vector<Hyperparameter> run_hyperparameters(const DgRun& run);
// And those that no setting follows, as DomainBed logs them.
std::vector<Hyperparameter> all_run_hyperparameters(const DgRun& run);

// {"dataset", "algorithm", "model", "test_envs", "trial_seed", "hparams_seed", "steps"}: what the run is of; but for
// "model" and, where they apply, "variation" and "single_source" in DomainBed's names.
Json dg_arguments(const DgRun& run);

// What runs of the same arguments may differ in: {"section.key": value} of steps, evaluations and every override, with
// the values of the configuration; and "image_size" of photographs. config: dg_config(run).
Json dg_settings(const DgRun& run, const Json& config);

// The lines of DomainBed's results.jsonl for a run folder, one for each evaluation so far: env{i}_in_acc and
// env{i}_out_acc of every environment, step, epoch, loss, step_time, mem_gb, "args" and "hparams" (all that
// DomainBed draws; where a setting follows one, what trained); beyond those images_per_s of updates, eval_images_per_s
// and eval_mem_gb; null where the run has not measured them. "args" has dataset and algorithm by DomainBed's names,
// dg_settings() as "settings", data_identity() as "data" and the names of the "environments" too. Of a run that is done
// also "cost": parameters, active_parameters and multiply_adds of the model. An algorithm that ends with weights of its
// own, such as an average, has a last line of these, with their name as "result_weights". config: dg_config(run).
std::vector<Json> dg_results(const DgRun& run, const Json& config, const std::string& folder);

// Raises Error, with the first difference, if the run in `folder` has another configuration than dg_config() gave.
void check_same_run(const Json& config, const std::string& folder);

// Trains into `folder`, or goes on there, and writes results.jsonl. Returns its lines. Does nothing but that if the run
// is done. Raises Error if interrupted, and for a folder with another run.
std::vector<Json> train_dg(const DgRun& run, const std::string& folder);

}  // namespace sparsight
