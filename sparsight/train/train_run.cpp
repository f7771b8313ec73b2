#include "sparsight/train/train_run.h"

#include <filesystem>
#include <optional>
#include <ostream>

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/config.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/toml.h"
#include "sparsight/data/data_info_json.h"
#include "sparsight/eval/records.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/report/report.h"
#include "sparsight/report/run/explain_folder.h"
#include "sparsight/report/run/superclass_folder.h"
#include "sparsight/report/table.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/trainer.h"

namespace sparsight {
namespace {

constexpr size_t kShownChanges = 5;

void print_result(const RunFolder& folder, std::ostream& out) {
  out << result_table(read_run_metrics(folder.metrics())) << "run folder: " << printable(folder.path())
      << "\nreport: " << printable(folder.report()) << "\n";
}

void run_to_the_end(Trainer& trainer, std::ostream& out, GoOn go_on) {
  const RunFolder& folder = trainer.folder();
  const TrainingEnd end = trainer.run();
  if (end == TrainingEnd::interrupted)
    fail("interrupted after step ", trainer.step(),
         go_on == GoOn::resume_flag ? "; resume with: sparsight train --resume " + printable(folder.path())
                                    : "; run the same command again to continue");
  write_report(folder.path());
  print_result(folder, out);
}

// The division into super-classes that the run began with: that of its checkpoint or, before the first one, of its
// folder. Null: the folder is of a version that did not write it, or was begun without super-classes.
std::optional<std::vector<int64_t>> recorded_superclasses(const RunFolder& folder) {
  if (folder.has_checkpoint("last")) {
    const auto state = try_parse_json_object(read_safetensors_metadata(folder.checkpoint("last"))["state"]);
    if (!state || !state->contains("data")) return std::nullopt;  // reading the checkpoint says what is wrong with it
    return data_info_from(state->at("data")).super_class_of;
  }
  if (std::filesystem::exists(folder.superclasses())) return read_superclass_map(folder.superclasses());
  return std::nullopt;
}

// Somebody removed the last checkpoint: a run writes it before the first best one.
[[noreturn]] void fail_without_last(const RunFolder& folder, GoOn go_on) {
  fail(printable(folder.checkpoint("last")), " is missing, so this run cannot be resumed. ",
       go_on == GoOn::resume_flag
           ? "Start a new run from its best weights with --init-from " + printable(folder.checkpoint("best")) +
                 ", or train it again from the start with --overwrite"
           : "Remove the folder " + printable(folder.path()) + " and run the same command again");
}

// The same bits as an uninterrupted run need the same settings. What to do about NaN does not change them.
void check_unchanged(const Json& config, const RunFolder& folder) {
  const auto metadata = try_parse_json_object(read_safetensors_metadata(folder.checkpoint("last"))["config"]);
  if (!metadata) return;  // reading the checkpoint says what is wrong with it
  const Json now = config.flatten(), before = metadata->flatten();
  std::vector<std::string> changes;
  for (const auto& [key, value] : now.items())
    if (before.contains(key) && before[key] != value && key != "/train/on_nan")
      changes.push_back(cat(key.substr(1), " is ", value.dump(), ", was ", before[key].dump()));
  if (changes.empty()) return;
  const size_t count = changes.size();
  if (count > kShownChanges) changes.resize(kShownChanges);
  fail(folder.config(), " was changed after the last checkpoint: ", join(changes),
       count > kShownChanges ? cat(" and ", count - kShownChanges, " more") : "",
       "; undo that, or go on with --allow-changed-config");
}

}  // namespace

void start_training(const Json& config, const std::string& path, bool overwrite, std::ostream& out, GoOn go_on) {
  TrainingSetup setup = make_training_setup(config, /*fresh=*/true);
  RunFolder folder = RunFolder::create(path, overwrite ? IfExists::kOverwrite : IfExists::kRefuse);
  if (overwrite) {  // what was made of the earlier weights
    remove_explanations(folder.path());
    remove_run_records(folder.path());
    remove_superclasses(folder.path());
  }
  write_file_atomically(folder.env(), describe_environment().dump(2) + "\n");
  if (!setup.data.super_class_of.empty()) write_superclass_map(folder.superclasses(), setup.data.super_class_of);
  write_file_atomically(folder.config(), to_toml(setup.config));
  Trainer trainer(std::move(setup), std::move(folder));
  run_to_the_end(trainer, out, go_on);
}

void resume_training(const std::string& path, const ResumeOptions& options, std::ostream& out) {
  RunFolder folder = RunFolder::create(path, IfExists::kResume);
  if (folder.is_done()) {  // not an error: a job that is restarted automatically must end at some point
    log_info("the run ", path, " is finished; to train longer, start a new run with --init-from ",
             folder.checkpoint("last"));
    write_report(folder.path());
    print_result(folder, out);
    return;
  }
  warn_of_other_kernels(folder.env());
  Config config = Config::from_text(read_file(folder.config(), kMaxConfigBytes), folder.config());
  const bool fresh = !folder.has_checkpoint("last");
  if (fresh && folder.has_checkpoint("best")) fail_without_last(folder, options.go_on);
  check_trained_names(config.tree(), config_sections());
  const Json resolved = resolve(config, config_sections());
  if (!fresh && !options.allow_changed_config) check_unchanged(resolved, folder);
  if (!options.on_nan.empty()) config.set("train.on_nan=" + options.on_nan);
  TrainingSetup setup = make_training_setup(resolve(config, config_sections()), fresh, recorded_superclasses(folder));
  Trainer trainer(std::move(setup), std::move(folder));
  trainer.resume();
  run_to_the_end(trainer, out, options.go_on);
}

}  // namespace sparsight
