// A training run from beginning to end: folder, set-up, training, result table and report.
#pragma once

#include <iosfwd>
#include <string>

#include "sparsight/core/options.h"
#include "sparsight/dist/group.h"

namespace sparsight {

// How the user goes on with a run that was stopped, for messages.
enum class GoOn {
  resume_flag,  // sparsight train --resume FOLDER; it has --overwrite and --init-from too
  same_command  // the command goes on by itself when it is repeated
};

struct ResumeOptions {
  std::string on_nan{};               // "stop" or "skip"; empty: as configured
  bool allow_changed_config = false;  // go on even if config.toml is not what the checkpoint was trained with
  GoOn go_on = GoOn::resume_flag;
  int64_t more_epochs = 0;  // of a finished run (extend_run.h)
};

// Trains from a resolved configuration into a new run folder. The result table goes to `out`. Raises Error if the
// folder already contains a run (unless `overwrite`), or if the run was interrupted (the message says how to resume).
// group: the processes that train it. Rank 0's folder is the run; the others write into folders of their own, which are
// gone at the end. Where a launcher has started the group again, the run in the folder is continued.
void start_training(const Json& config, const std::string& folder, bool overwrite, std::ostream& out,
                    GoOn go_on = GoOn::resume_flag, const dist::GroupPtr& group = std::make_shared<dist::Group>());

// Continues a run from its last checkpoint, or from the start if it has none. A finished run is left unchanged: its
// result is printed again. on_nan: train.on_nan from now on, or "" to keep the run's setting.
// Other ranks of the group get a copy of what rank 0's folder has.
void resume_training(const std::string& folder, const ResumeOptions& options, std::ostream& out,
                     const dist::GroupPtr& group = std::make_shared<dist::Group>());

}  // namespace sparsight
