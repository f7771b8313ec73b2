// A substitute for SLURM's sbatch: runs every task of the array that a script asks for, one after the other.
#pragma once

#include <string>

#include "tests/support/program.h"

namespace sparsight::testing {

// Writes the program into `folder` and returns its path. It understands "#SBATCH --array=0-3,7" and "--output=", and
// ends with the number of tasks that failed.
inline std::string fake_sbatch(const TemporaryFolder& folder) {
  return folder.write("sbatch", R"sh(#!/bin/bash
script=$1
ranges=$(sed -n 's/^#SBATCH --array=//p' "$script")
log=$(sed -n 's/^#SBATCH --output="\(.*\)"$/\1/p' "$script")
failed=0
for range in ${ranges//,/ }; do
  for ((task = ${range%-*}; task <= ${range#*-}; ++task)); do
    file=${log//%A/1}
    file=${file//%a/$task}
    SLURM_ARRAY_TASK_ID=$task /bin/bash "$script" > "${file//%%/%}" 2>&1 || failed=$((failed + 1))
  done
done
exit $failed
)sh");
}

inline ProgramResult run_sbatch(const std::string& sbatch, const std::string& script, const std::string& folder) {
  ProgramOptions options;
  options.folder = folder;
  return Program({sbatch, script}, options, "/bin/bash").wait();
}

}  // namespace sparsight::testing
