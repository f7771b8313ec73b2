#include "sparsight/sweep/sweep.h"

#include <algorithm>
#include <filesystem>

#include "cli/cmd_sweep.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/many_runs.h"
#include "cli/work/program_path.h"
#include "cli/work/read_config.h"
#include "cli/work/run_in_group.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/sweep/halving.h"
#include "sparsight/sweep/sweep_table.h"
#include "sparsight/train/run_config.h"

namespace sparsight::cli {
namespace {

std::vector<std::string> to_command(const SweepArguments& arguments) {
  std::vector<std::string> command{program_path(), "sweep", arguments.config.file, cat("--seeds=", arguments.seeds)};
  for (const std::string& assignment : arguments.config.overrides) command.push_back("--set=" + assignment);
  for (const std::string& axis : arguments.grid) command.push_back("--grid=" + axis);
  if (arguments.random > 0) command.push_back(cat("--random=", arguments.random));
  return command;
}

// A rung, and which settings are on it. The last one of a sweep without --halving has no epochs of its own.
struct SweepRung {
  std::vector<SweepPoint> points;
  std::optional<int64_t> epochs;
};

void write_files(const Sweep& sweep, const std::vector<SettingScores>& scores, const std::vector<SweepSection>& earlier,
                 const std::string& folder) {
  write_file_atomically(folder + "/sweep.json", checked_json_file(sweep_json(sweep.axes, scores)));
  write_file_atomically(folder + "/sweep.html", sweep_page(sweep.name, sweep.axes, scores, earlier));
}

// "best: router.k=2; train it with: sparsight train demo.toml --set router.k=2"
std::string best_text(const SweepArguments& arguments, const Sweep& sweep, const std::vector<SettingScores>& scores) {
  if (!has_validation(scores)) return "there is no validation split (data.validation), so no setting is chosen\n";
  const SettingScores& best = scores[ranked(scores).front()];
  std::string command = "sparsight train " + arguments.config.file;
  for (size_t a = 0; a < sweep.axes.size(); ++a) command += " --set '" + sweep.axes[a].key + "=" + best.point[a] + "'";
  for (const std::string& assignment : arguments.config.overrides) command += " --set '" + assignment + "'";
  return cat("best: ", printable(point_text(sweep.axes, best.point)), "\ntrain it with: ", printable(command), "\n");
}

void print_sweep(const SweepArguments& arguments, const Sweep& sweep, const SweepRung& rung,
                 const std::vector<SweepSection>& earlier, const JobStore& store) {
  const std::vector<SettingScores> scores = sweep_scores(sweep, rung.points, store, rung.epochs);
  write_files(sweep, scores, earlier, store.folder());
  if (arguments.format == "json") {
    output() << json_text(sweep_json(sweep.axes, scores), 2) << "\n";
    return;
  }
  const Rows rows = sweep_rows(sweep.axes, scores);
  output() << (arguments.format == "markdown" ? markdown(rows) : aligned(rows)) << "\n"
           << best_text(arguments, sweep, scores) << "report: " << printable(store.folder()) << "/sweep.html\n";
}

Sweep to_sweep(const SweepArguments& arguments) {
  return {std::filesystem::path(arguments.config.file).stem().string(), read_config(arguments.config),
          parse_axes(arguments.grid), arguments.seeds};
}

std::vector<SweepPoint> sweep_points(const SweepArguments& arguments, const Sweep& sweep) {
  if (arguments.random == 0) return grid_points(sweep.axes);
  const Json config = resolve(sweep.config, config_sections());
  return random_points(sweep.axes, arguments.random, config["run"]["seed"]);
}

int64_t configured_epochs(const Sweep& sweep) {
  for (const SweepAxis& axis : sweep.axes)
    if (axis.key == "train.epochs" || axis.key == "train.max_steps")
      fail_usage("--halving decides the epochs of each training: leave ", axis.key, " out of --grid");
  return resolve(sweep.config, config_sections())["train"]["epochs"];
}

// The settings of the next rung: the best ones of `scores`.
std::vector<SweepPoint> best_points(const std::vector<SettingScores>& scores, int64_t count) {
  std::vector<SweepPoint> points;
  for (const size_t i : ranked(scores)) {
    if (std::ssize(points) == count) break;
    if (scores[i].trials.empty() || !scores[i].trials.front().validation)
      fail_usage("--halving chooses settings by their validation accuracy: set data.validation above 0");
    points.push_back(scores[i].point);
  }
  return points;
}

// "8 settings for 1 epochs, 4 for 2, 2 for 4"
std::string rungs_text(const std::vector<Rung>& rungs) {
  std::vector<std::string> parts;
  for (const Rung& rung : rungs)
    parts.push_back(
        cat(rung.settings, parts.empty() ? " settings for " : " for ", rung.epochs, parts.empty() ? " epochs" : ""));
  return join(parts);
}

bool all_done(const std::vector<SettingScores>& scores, int64_t seeds) {
  return std::ranges::all_of(scores, [&](const SettingScores& setting) { return std::ssize(setting.trials) == seeds; });
}

// All rungs, one after the other. Each process finds the results of the others in the folder.
void work_on_rungs(const SweepArguments& arguments, const Sweep& sweep, dist::Group& group) {
  SweepRung rung{sweep_points(arguments, sweep), {}};
  const auto count = std::ssize(rung.points);
  const std::vector<Rung> rungs = arguments.halving == 0
                                      ? std::vector<Rung>{{0, count}}
                                      : halving_rungs(count, configured_epochs(sweep), arguments.halving);
  if (arguments.halving > 0) log_info("successive halving: ", rungs_text(rungs));
  std::vector<SweepSection> earlier;
  for (size_t r = 0; r < rungs.size(); ++r) {
    if (arguments.halving > 0) rung.epochs = rungs[r].epochs;
    const bool last = r + 1 == rungs.size();
    ManyRuns runs{"sweep", "a sweep of " + sweep.name, sweep_jobs(sweep, rung.points, rung.epochs),
                  to_command(arguments), [&](const JobStore& store) {
                    if (last) print_sweep(arguments, sweep, rung, earlier, store);
                  }};
    work_on(runs, arguments.jobs, group);
    if (last || arguments.jobs.plan) return;
    const JobStore store(arguments.jobs.out, runs.of, "--out");
    const std::vector<SettingScores> scores = sweep_scores(sweep, rung.points, store, rung.epochs);
    if (!all_done(scores, sweep.seeds)) return;  // another rank than the first one, which says what failed
    earlier.push_back(
        {cat(rungs[r].settings, " settings, ", rungs[r].epochs, " epochs"), sweep_rows(sweep.axes, scores)});
    rung.points = best_points(scores, rungs[r + 1].settings);
  }
}

}  // namespace

void run_sweep(const SweepArguments& given) {
  begin_interruptible_work();
  SweepArguments arguments = given;
  const Sweep sweep = to_sweep(arguments);
  if (arguments.jobs.out.empty()) arguments.jobs.out = "runs/sweeps/" + sweep.name;
  run_in_group(arguments.jobs.launch, [&](const dist::GroupPtr& group) { work_on_rungs(arguments, sweep, *group); });
}

}  // namespace sparsight::cli
