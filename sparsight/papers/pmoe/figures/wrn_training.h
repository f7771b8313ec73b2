// One training of the experiments with wide residual networks (Chowdhury et al. 2023, figures 10 to 16 and table 2), as
// the authors' code has it.
#pragma once

#include <string>

#include "sparsight/reproduce/train_job.h"

namespace sparsight::pmoe {

struct WrnResult {
  double accuracy = 0;  // of the last weights on the test split, in %
  Json worst_cell;      // the lowest accuracy of a class and domain, in %; null where they are too many
  JobTraining training;
};

// sections: as of train_in_job(); what they leave out is as in the authors' code: plain SGD of rate 0.1, constant,
// batches of 128 with the last smaller one kept, 50 epochs, no augmentation.
WrnResult train_wrn(const Json& sections, const std::string& job_folder);

// The section of the model, and for `routed` those of the MoE layer, as the authors' code has them: for faces eight
// experts with 3x3 kernels on 16 patches, else four with 1x1 kernels on 64 places. Written into `sections`.
struct WrnModel {
  bool routed = false;
  bool faces = true;
  int64_t taken = 2;  // patches that each expert takes
  int64_t widen = 10;
  bool gathered = false;   // the expert path that computes only what was routed
  double momentum = 0.99;  // of the running averages of batch norms
};
void set_model(Json& sections, const WrnModel& model);

}  // namespace sparsight::pmoe
