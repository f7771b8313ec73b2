#include "sparsight/report/run/run_summary.h"

#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/toml.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/run/confused_file.h"
#include "sparsight/report/run/read_explanation.h"
#include "sparsight/report/run/run_file.h"

namespace sparsight {

namespace {

namespace fs = std::filesystem;

// What the run's checkpoints keep of its data: names of classes and super-classes.
void read_checkpoint_data(const RunFolder& folder, RunSummary& run) {
  for (const char* name : {"best", "last"}) {
    if (!folder.has_checkpoint(name)) continue;
    const auto metadata = read_checkpoint_metadata(folder.checkpoint(name));
    const auto state = metadata.find("state");
    if (state == metadata.end()) continue;
    const Json data = member(parse_json_object(state->second, "the state of the checkpoint"), "data");
    run.classes = read_strings(member(data, "classes"));
    run.super_classes = read_strings(member(data, "super_classes"));
    for (const double group : numbers(member(data, "super_class_of")))
      run.super_class_of.push_back(group >= 0 && group < 1e9 ? static_cast<int64_t>(group) : -1);
    return;
  }
}

}  // namespace

RunSummary read_run_summary(const std::string& path) {
  const RunFolder folder = RunFolder::open(path);
  RunSummary run;
  run.name = fs::weakly_canonical(path).filename().string();
  if (!fs::exists(folder.metrics())) fail(path, " has no metrics.jsonl yet; train the run first");
  if (!fs::is_regular_file(folder.metrics())) fail(folder.metrics(), " is not a regular file; restore it");
  run.log = read_run_metrics(folder.metrics());
  run.warnings = run.log.warnings;
  if (run.log.empty()) fail(folder.metrics(), " has no training or evaluation records; train the run first");
  attempt(run.warnings,
          [&] { run.config = parse_toml(read_run_file(path, "config.toml", kMaxConfigBytes), folder.config()).tree; });
  attempt(run.warnings, [&] { run.env = read_object(path, "env.json"); });
  attempt(run.warnings, [&] { read_checkpoint_data(folder, run); });
  run.explain = read_explanation(path, "explain", run);
  run.explain_images = read_explanation(path, "explain_images", run);
  run.confused = read_confused(path, final_eval(run.log, false), run.warnings);
  run.attacks = read_attacks(path, run.warnings);
  return run;
}

}  // namespace sparsight
