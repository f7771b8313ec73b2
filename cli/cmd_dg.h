// `sparsight dg`: domain generalisation by DomainBed's protocol.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/jobs_arguments.h"

namespace sparsight::cli {

// What a run is of; the same for all runs of a sweep.
struct DgRunArguments {
  std::string set = "rotated_mnist", data, model;
  std::int64_t steps = 0, eval_every = 0, image_size = 224;
  std::vector<std::string> overrides;
};

struct DgHparamsArguments {
  std::string algorithm = "erm", set = "rotated_mnist", model;
  std::int64_t trial = 0, seed = 0;
  bool json = false;
};

struct DgTrainArguments {
  DgRunArguments run;
  std::string algorithm = "erm", out;
  std::vector<std::int64_t> test_envs = {0};
  std::int64_t trial = 0, seed = 0;
};

struct DgSweepArguments {
  DgRunArguments run;
  JobsArguments jobs;
  std::string format = "text";  // of the tables in the end
  std::vector<std::string> algorithms = {"erm"}, models, sets;
  std::int64_t trials = 3, hparams = 20;
  bool no_pairs = false, single_source = false, published = false;
};

struct DgAblateArguments {
  DgRunArguments run;
  JobsArguments jobs;
  std::string format = "text";  // of the tables in the end
  std::string algorithm = "erm";
  std::vector<std::string> only, vary;
  std::vector<std::int64_t> test_envs;
  std::int64_t trials = 3;
};

struct DgTableArguments {
  std::string folder, format = "text", baseline;
  bool published = false;
};

struct DgCollectArguments {
  std::vector<std::string> folders;
  std::string out, format = "text", baseline;
  bool published = false;
};

struct DgExportArguments {
  std::vector<std::string> folders;
  std::string out;
};

struct DgCubArguments {
  std::string cub, candy, mosaic, udnie, out;
};

void run_dg_ablate(const DgAblateArguments& arguments);
void run_dg_collect(const DgCollectArguments& arguments);
void run_dg_cub(const DgCubArguments& arguments);
void run_dg_export(const DgExportArguments& arguments);
void run_dg_hparams(const DgHparamsArguments& arguments);
void run_dg_train(const DgTrainArguments& arguments);
void run_dg_sweep(const DgSweepArguments& arguments);
void run_dg_table(const DgTableArguments& arguments);

}  // namespace sparsight::cli
