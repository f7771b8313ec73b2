#include "cli/jobs_arguments.h"

namespace sparsight::cli {

void JobsArguments::declare(CLI::App& verb) {
  verb.add_option("--out", out, "Folder of the runs; those that are there are not repeated")->type_name("DIR");
  CLI::Option* one_task =
      verb.add_option("--task", task, "Only the jobs of one task of a job array: INDEX/COUNT")->type_name("I/N");
  CLI::Option* script =
      verb.add_option("--slurm", slurm, "Run nothing; write an sbatch script whose array tasks do the remaining runs")
          ->type_name("FILE");
  verb.add_option("--tasks", tasks, "Maximum number of tasks in that array")
      ->needs(script)
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str()
      ->type_name("N");
  CLI::Option* only_plan =
      verb.add_flag("--plan", plan, "Print how many runs there are and how long they may take, and stop");
  launch
      .declare(verb,
               "Do the runs in so many processes on this machine, each with its share of the cores: the same "
               "results")
      ->excludes(one_task)
      ->excludes(script)
      ->excludes(only_plan);
}

}  // namespace sparsight::cli
