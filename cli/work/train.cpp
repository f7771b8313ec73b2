#include <filesystem>

#include "cli/cmd_train.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/read_config.h"
#include "cli/work/run_in_group.h"
#include "sparsight/train/train_run.h"

namespace sparsight::cli {
namespace {

void train_in_group(const TrainArguments& arguments, const dist::GroupPtr& group) {
  if (!arguments.resume.empty()) {
    const ResumeOptions options{.on_nan = arguments.on_nan,
                                .allow_changed_config = arguments.allow_changed_config,
                                .more_epochs = more_epochs(arguments)};
    resume_training(arguments.resume, options, output(), group);
    return;
  }
  ConfigArguments config = arguments.config;
  if (!arguments.init_from.empty()) config.overrides.push_back("train.init_from=" + arguments.init_from);
  if (arguments.allow_missing) config.overrides.push_back("train.allow_missing=true");
  if (!arguments.on_nan.empty()) config.overrides.push_back("train.on_nan=" + arguments.on_nan);
  const std::string name = std::filesystem::path(config.file).stem().string();
  start_training(resolved_config(config), arguments.out.empty() ? "runs/" + name : arguments.out, arguments.overwrite,
                 output(), GoOn::resume_flag, group);
}

}  // namespace

void run_train(const TrainArguments& arguments) {
  begin_interruptible_work();
  run_in_group(arguments.launch, [&](const dist::GroupPtr& group) { train_in_group(arguments, group); });
}

}  // namespace sparsight::cli
