// The model that an attack is on.
#pragma once

#include "sparsight/attacks/run/attack_plan.h"
#include "sparsight/infer/loaded_model.h"

namespace sparsight {

struct AttackedRun {
  LoadedModel loaded;
  std::string fingerprint;  // of the weights as trained: names and values of all parameters and buffers
  std::shared_ptr<const ProgramModel> program = {};  // of an attack without gradients; null where there is none
};

// Sets the number of threads too. Raises UsageError where what a file of weights alone does not say is not given.
AttackedRun load_attacked(const AttackRequest& request, const AttackPlan& plan);

// The batch of models whose images influence each other: that of evaluation, as it changes what each gets.
int64_t shared_batch(const LoadedModel& loaded);

}  // namespace sparsight
