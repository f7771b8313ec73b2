#include <filesystem>
#include <memory>

#include "cli/config_arguments.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/train/train_run.h"

namespace sparsight::cli {

void add_train(CLI::App& app) {
  struct Arguments {
    ConfigArguments config;
    std::string out, resume, init_from, on_nan;
    bool overwrite = false, allow_changed_config = false, allow_missing = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = add_verb(app, "train", "Train a model from a configuration file into a run folder",
                            "sparsight train configs/demo.toml --out runs/demo\n"
                            "sparsight train configs/demo.toml --set train.epochs=2 --set router.k=1 --out runs/short\n"
                            "sparsight train --resume runs/demo");
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
  interruptible(verb, [arguments] {
    ConfigArguments config = arguments->config;
    if (!arguments->resume.empty()) {
      if (!config.file.empty() || !config.overrides.empty() || !arguments->out.empty() ||
          !arguments->init_from.empty() || arguments->overwrite || arguments->allow_missing)
        fail_usage(
            "--resume takes its configuration from the run folder; leave out the configuration, --out, --set, "
            "--init-from, --allow-missing and --overwrite");
      resume_training(arguments->resume, {arguments->on_nan, arguments->allow_changed_config}, output());
      return;
    }
    if (config.file.empty()) fail_usage("train needs a configuration, for example configs/demo.toml, or --resume DIR");
    if (!arguments->init_from.empty()) config.overrides.push_back("train.init_from=" + arguments->init_from);
    if (arguments->allow_missing) config.overrides.push_back("train.allow_missing=true");
    if (!arguments->on_nan.empty()) config.overrides.push_back("train.on_nan=" + arguments->on_nan);
    const std::string name = std::filesystem::path(config.file).stem().string();
    start_training(config.resolved(), arguments->out.empty() ? "runs/" + name : arguments->out, arguments->overwrite,
                   output());
  });
}

}  // namespace sparsight::cli
