#include "sparsight/train/train_run.h"

#include <ostream>

#include "sparsight/core/config.h"
#include "sparsight/core/log.h"
#include "sparsight/core/toml.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/report.h"
#include "sparsight/report/table.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/trainer.h"

namespace sparsight {
namespace {

constexpr size_t kMaxConfigBytes = 16 << 20;

void print_result(const RunFolder& folder, std::ostream& out) {
  out << result_table(read_metrics(folder.metrics())) << "run folder: " << folder.path()
      << "\nreport: " << folder.report() << "\n";
}

void run_to_the_end(Trainer& trainer, std::ostream& out) {
  const RunFolder& folder = trainer.folder();
  const TrainingEnd end = trainer.run();
  if (end == TrainingEnd::interrupted)
    fail("interrupted after step ", trainer.step(), "; resume with: sparsight train --resume ", folder.path());
  write_report(folder.path());
  print_result(folder, out);
}

}  // namespace

void start_training(const Json& config, const std::string& path, bool overwrite, std::ostream& out) {
  TrainingSetup setup = make_training_setup(config, /*fresh=*/true);
  RunFolder folder = RunFolder::create(path, overwrite ? IfExists::kOverwrite : IfExists::kRefuse);
  write_file_atomically(folder.config(), to_toml(config));
  write_file_atomically(folder.env(), describe_environment().dump(2) + "\n");
  Trainer trainer(std::move(setup), std::move(folder));
  run_to_the_end(trainer, out);
}

void resume_training(const std::string& path, const std::string& on_nan, std::ostream& out) {
  RunFolder folder = RunFolder::create(path, IfExists::kResume);
  if (folder.is_done()) {  // not an error: a job that is restarted automatically must end at some point
    log_info("the run ", path, " is finished; to train longer, start a new run with --init-from ",
             folder.checkpoint("last"));
    write_report(folder.path());
    print_result(folder, out);
    return;
  }
  Config config = Config::from_text(read_file(folder.config(), kMaxConfigBytes), folder.config());
  if (!on_nan.empty()) config.set("train.on_nan=" + on_nan);
  TrainingSetup setup =
      make_training_setup(resolve(config, config_sections()), /*fresh=*/!folder.has_checkpoint("last"));
  Trainer trainer(std::move(setup), std::move(folder));
  trainer.resume();
  run_to_the_end(trainer, out);
}

}  // namespace sparsight
