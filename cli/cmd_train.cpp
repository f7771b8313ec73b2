#include "cli/cmd_train.h"

#include <charconv>
#include <memory>

#include "cli/verbs.h"
#include "sparsight/core/error.h"

namespace sparsight::cli {

int64_t more_epochs(const TrainArguments& arguments) {
  const std::vector<std::string>& overrides = arguments.config.overrides;
  const std::string prefix = "train.epochs=+";
  constexpr int64_t kMaxMoreEpochs = 1'000'000;
  if (arguments.resume.empty() || overrides.size() != 1 || !overrides[0].starts_with(prefix)) return 0;
  const char *begin = overrides[0].data() + prefix.size(), *end = overrides[0].data() + overrides[0].size();
  int64_t epochs = 0;
  const auto [stop, error] = std::from_chars(begin, end, epochs);
  return error == std::errc() && stop == end && epochs >= 1 && epochs <= kMaxMoreEpochs ? epochs : 0;
}

namespace {

void check_train(const TrainArguments& arguments) {
  const ConfigArguments& config = arguments.config;
  if (arguments.resume.empty() && config.file.empty())
    fail_usage("train needs a configuration, for example configs/demo.toml, or --resume DIR");
  const bool changed = !config.file.empty() || (!config.overrides.empty() && more_epochs(arguments) == 0) ||
                       !arguments.out.empty() || !arguments.init_from.empty() || arguments.overwrite ||
                       arguments.allow_missing;
  if (!arguments.resume.empty() && changed)
    fail_usage(
        "--resume takes its configuration from the run folder; leave out the configuration, --out, --set (but "
        "train.epochs=+N, for more epochs of a finished run), --init-from, --allow-missing and --overwrite");
}

}  // namespace

void add_train(CLI::App& app) {
  const auto arguments = std::make_shared<TrainArguments>();
  CLI::App* verb =
      add_verb(app, "train", "Train a model from a configuration file into a run folder",
               "sparsight train configs/demo.toml --out runs/demo\n"
               "sparsight train configs/demo.toml --set train.epochs=2 --set router.k=1 --out runs/short\n"
               "sparsight train --resume runs/demo\n"
               "sparsight train --resume runs/demo --set train.epochs=+5     (more epochs of a finished run)\n"
               "sparsight train configs/demo.toml --processes 2          (docs/several_processes.md)\n"
               "torchrun --no-python --nproc-per-node 2 sparsight train configs/demo.toml");
  arguments->config.declare(verb);
  verb->add_option("--out", arguments->out, "Run folder to create (default: runs/<name of the configuration>)")
      ->type_name("DIR");
  verb->add_option("--resume", arguments->resume, "Continue the run in this folder from its last checkpoint")
      ->type_name("DIR");
  verb->add_flag("--overwrite", arguments->overwrite, "Replace an existing run in the folder");
  verb->add_option("--init-from", arguments->init_from, "Start from these weights (.safetensors, .pt, .pth)")
      ->type_name("FILE");
  verb->add_flag("--allow-missing", arguments->allow_missing,
                 "With --init-from: go on if the file lacks weights of the model, or has some that do not fit");
  verb->add_option("--on-nan", arguments->on_nan,
                   "What to do if the loss is NaN or infinite: stop (default) or skip (the step)");
  verb->add_flag("--allow-changed-config", arguments->allow_changed_config,
                 "Resume even if config.toml was changed after the last checkpoint");
  arguments->launch.declare(
      *verb,
      "Train with so many processes on this machine, each on train.accumulate batches of every step: the same "
      "bits as one process with as many times train.accumulate");
  arguments->launch.declare_restarts(*verb, 3);
  verb->callback([arguments] {
    check_train(*arguments);
    run_train(*arguments);
  });
}

}  // namespace sparsight::cli
