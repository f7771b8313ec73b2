#include <filesystem>

#include "cli/cmd_train.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/read_config.h"
#include "sparsight/train/train_run.h"

namespace sparsight::cli {

void run_train(const TrainArguments& arguments) {
  begin_interruptible_work();
  if (!arguments.resume.empty()) {
    resume_training(arguments.resume, {arguments.on_nan, arguments.allow_changed_config}, output());
    return;
  }
  ConfigArguments config = arguments.config;
  if (!arguments.init_from.empty()) config.overrides.push_back("train.init_from=" + arguments.init_from);
  if (arguments.allow_missing) config.overrides.push_back("train.allow_missing=true");
  if (!arguments.on_nan.empty()) config.overrides.push_back("train.on_nan=" + arguments.on_nan);
  const std::string name = std::filesystem::path(config.file).stem().string();
  start_training(resolved_config(config), arguments.out.empty() ? "runs/" + name : arguments.out, arguments.overwrite,
                 output());
}

}  // namespace sparsight::cli
