// A training run from beginning to end: folder, set-up, training, result table and report.
#pragma once

#include <iosfwd>
#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

struct ResumeOptions {
  std::string on_nan{};               // "stop" or "skip"; empty: as configured
  bool allow_changed_config = false;  // go on even if config.toml is not what the checkpoint was trained with
};

// Trains from a resolved configuration into a new run folder. The result table goes to `out`. Raises Error if the
// folder already contains a run (unless `overwrite`), or if the run was interrupted (the message says how to resume).
void start_training(const Json& config, const std::string& folder, bool overwrite, std::ostream& out);

// Continues a run from its last checkpoint, or from the start if it has none. A finished run is left unchanged: its
// result is printed again. on_nan: train.on_nan from now on, or "" to keep the run's setting.
void resume_training(const std::string& folder, const ResumeOptions& options, std::ostream& out);

}  // namespace sparsight
