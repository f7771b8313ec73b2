#include "cli/cmd_sweep.h"

#include <memory>

#include "cli/verbs.h"
#include "sparsight/core/error.h"

namespace sparsight::cli {
namespace {

constexpr int64_t kMaxCount = 1'000'000;

void add_choices(CLI::App& verb, SweepArguments& arguments) {
  verb.add_option(
          "--grid", arguments.grid,
          "A setting and its values, or the range that --random draws from: log(LOW,HIGH), uniform(LOW,HIGH) or "
          "integers(LOW,HIGH); may be repeated")
      ->required()
      ->allow_extra_args(false)
      ->type_name("SECTION.KEY=VALUE,...");
  verb.add_option("--random", arguments.random, "Train so many settings at random instead of all combinations")
      ->check(CLI::Range(int64_t{1}, kMaxCount))
      ->type_name("N");
  verb.add_option(
          "--halving", arguments.halving,
          "Successive halving: train all settings for few epochs, the best 1/FACTOR of them for FACTOR times as "
          "many, and so on up to train.epochs")
      ->check(CLI::Range(int64_t{2}, int64_t{1000}))
      ->type_name("FACTOR");
  verb.add_option("--seeds", arguments.seeds, "Trainings of each setting: with run.seed, and the seeds after it")
      ->check(CLI::Range(int64_t{1}, kMaxCount))
      ->capture_default_str()
      ->type_name("N");
}

void check_sweep(const SweepArguments& arguments) {
  if (arguments.config.file.empty()) fail_usage("sweep needs a configuration, for example configs/demo.toml");
  if (arguments.halving > 0 && !(arguments.jobs.slurm.empty() && arguments.jobs.task.empty()))
    fail_usage("--halving decides what to train by what was trained: leave it out with --slurm and --task");
}

}  // namespace

void add_sweep(CLI::App& app) {
  const auto arguments = std::make_shared<SweepArguments>();
  CLI::App* verb =
      add_verb(app, "sweep", "Train a configuration with many settings and seeds, and compare them",
               "sparsight sweep configs/demo.toml --grid router.k=1,2 --seeds 3\n"
               "sparsight sweep configs/demo.toml --grid optimizer.lr=1e-3,3e-3 --grid moe.experts=4,8 --plan\n"
               "sparsight sweep configs/demo.toml --grid 'optimizer.lr=log(1e-4,1e-2)' --random 8 --halving 2\n"
               "sparsight sweep configs/demo.toml --grid router.k=1,2 --slurm sweep.sh && sbatch sweep.sh");
  arguments->config.declare(verb);
  add_choices(*verb, *arguments);
  arguments->jobs.declare(*verb);
  verb->add_option("--format", arguments->format, "Format of the table")
      ->check(CLI::IsMember({"text", "markdown", "json"}))
      ->capture_default_str();
  verb->callback([arguments] {
    check_sweep(*arguments);
    run_sweep(*arguments);
  });
}

}  // namespace sparsight::cli
