// A sweep: trainings of one configuration that differ in some settings and in their seed, as jobs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/config.h"
#include "sparsight/jobs/run_jobs.h"
#include "sparsight/sweep/axes.h"

namespace sparsight {

struct Sweep {
  std::string name;  // "demo", of the configuration
  Config config;     // what all trainings have in common
  std::vector<SweepAxis> axes;
  int64_t seeds = 1;  // of each setting: run.seed and those after it
};

// The resolved configuration of a training: number `trial` of the setting. epochs: instead of train.epochs. Raises
// UsageError for settings and values that a configuration does not take.
Json trial_config(const Sweep& sweep, const SweepPoint& point, int64_t trial, std::optional<int64_t> epochs = {});

// The trainings of each setting with each seed. Each leaves its run in the folder "run" of its job. The identity of a
// job is its configuration: sweeps in one folder share the trainings that they have in common.
JobList sweep_jobs(const Sweep& sweep, const std::vector<SweepPoint>& points, std::optional<int64_t> epochs = {});

// Accuracies (or precision@1), 0 to 1, of the weights that the run keeps.
struct TrialScore {
  int64_t seed = 0;
  std::optional<double> validation, test;  // null without such a split
  int64_t validation_images = 0, test_images = 0;
  double seconds = 0;
  std::string run;  // folder, relative to the sweep's
};
struct SettingScores {
  SweepPoint point;
  std::vector<TrialScore> trials;  // those that are done, by seed
};
// In the order of the points.
std::vector<SettingScores> sweep_scores(const Sweep& sweep, const std::vector<SweepPoint>& points,
                                        const JobStore& store, std::optional<int64_t> epochs = {});

}  // namespace sparsight
