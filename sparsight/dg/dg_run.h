// One run of DomainBed's protocol: a training run whose configuration follows from a few names and seeds.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/dg/dg_models.h"

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
  std::vector<std::string> overrides = {};  // "section.key=value", after everything else
  // After them; where one names another component, settings that it does not have are left out.
  std::vector<std::string> variation = {};
};

// DomainBed's seed of the run: a hash of data set, algorithm, test environments and seeds.
uint32_t run_seed(const DgRun& run);

// The resolved configuration. Raises UsageError for names that do not exist.
Json dg_config(const DgRun& run);

// {"dataset", "algorithm", "model", "test_envs", "trial_seed", "hparams_seed", "steps"}: what the run is of; but for
// "model" and, where there is one, "variation" in DomainBed's names.
Json dg_arguments(const DgRun& run);

// The lines of DomainBed's results.jsonl for a run folder, one for each evaluation so far: env{i}_in_acc and
// env{i}_out_acc of every environment, step, epoch, loss, step_time, mem_gb, "args" and "hparams"; beyond those
// images_per_s of updates, eval_images_per_s and eval_mem_gb; null where the run has not measured them. Of a run that
// is done also "cost": parameters, active_parameters and multiply_adds of the model.
std::vector<Json> dg_results(const DgRun& run, const std::string& folder);

// Raises Error, with the first difference, if the run in `folder` has another configuration.
void check_same_run(const DgRun& run, const std::string& folder);

// Trains into `folder`, or goes on there, and writes results.jsonl. Returns its lines. Does nothing but that if the run
// is done. Raises Error if interrupted, and for a folder with another run.
std::vector<Json> train_dg(const DgRun& run, const std::string& folder);

}  // namespace sparsight
