#include "sparsight/reproduce/train_job.h"

#include <filesystem>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/toml.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/run/run_metrics.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/trainer.h"

namespace sparsight {
namespace {

// Reads one log line per epoch, and the one of the test split.
void read_log(const std::vector<Json>& lines, JobTraining& training) {
  for (const Json& line : lines) {
    const std::string kind = line.at("kind");
    if (kind == "train")
      training.epochs.push_back({line.at("accuracy").get<double>(), line.at("seconds").get<double>()});
    else if (kind == "eval" && line.at("split") == "test" && is_reported(line))
      training.test = line;
  }
}

}  // namespace

JobTraining train_in_job(const Json& sections, const std::string& job_folder, const std::string& weights) {
  SPARSIGHT_CHECK(!job_folder.empty());
  const std::string folder = job_folder + "/training";
  const Json config = resolve(Config::from_tables(sections, "figure"), config_sections());
  TrainingSetup setup = make_training_setup(config, /*fresh=*/true);
  setup.validation_loader.reset();  // not used for model selection
  JobTraining training;
  training.steps_per_epoch = setup.train.log_every = setup.length.steps_per_epoch;
  const bool begun = std::filesystem::exists(folder + "/config.toml");
  RunFolder run = RunFolder::create(folder, begun ? IfExists::kResume : IfExists::kOverwrite);
  write_file_atomically(run.config(), to_toml(config));
  const std::string metrics = run.metrics(), checkpoint = run.checkpoint("best");
  {
    Trainer trainer(std::move(setup), std::move(run));
    trainer.resume();
    if (trainer.run() == TrainingEnd::interrupted) fail("interrupted after step ", trainer.step());
  }
  read_log(read_metrics(metrics), training);
  if (!weights.empty()) std::filesystem::rename(checkpoint, weights);
  std::filesystem::remove_all(folder);
  return training;
}

}  // namespace sparsight
