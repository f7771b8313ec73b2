// `sparsight eval`
#pragma once

#include "cli/launch_arguments.h"
#include "sparsight/infer/evaluate_corruptions.h"

namespace sparsight::cli {

struct EvalArguments {
  EvaluateRunOptions options;
  std::string data;               // data.root, or ""
  CorruptionRequest corruptions;  // kinds: empty for none, {"all"} for all
  bool json = false;
  LaunchArguments launch;
};

void run_eval(const EvalArguments& arguments);

}  // namespace sparsight::cli
