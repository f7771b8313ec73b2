// `sparsight dg`: domain generalisation by DomainBed's protocol.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight::cli {

// What a run is of; the same for all runs of a sweep.
struct DgRunArguments {
  std::string set = "rotated_mnist", data, model;
  std::int64_t steps = 0, eval_every = 0, image_size = 224;
  std::vector<std::string> overrides;
};

struct DgHparamsArguments {
  std::string algorithm = "erm", set = "rotated_mnist";
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
  std::vector<std::string> algorithms = {"erm"}, models;
  std::int64_t trials = 3, hparams = 20;
  std::int64_t tasks = 100;  // of the array that `slurm` describes
  bool no_pairs = false, plan = false;
  std::string out, task, slurm;
};

struct DgTableArguments {
  std::string folder, format = "text";
  bool published = false;
};

struct DgCubArguments {
  std::string cub, candy, mosaic, udnie, out;
};

void run_dg_cub(const DgCubArguments& arguments);
void run_dg_hparams(const DgHparamsArguments& arguments);
void run_dg_train(const DgTrainArguments& arguments);
void run_dg_sweep(const DgSweepArguments& arguments);
void run_dg_table(const DgTableArguments& arguments);

}  // namespace sparsight::cli
