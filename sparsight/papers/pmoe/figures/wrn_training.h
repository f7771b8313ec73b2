// A training run of the experiments with wide residual networks (Chowdhury et al. 2023, figures 10 to 16 and table 2),
// with the settings of the authors' code; the paper does not give them.
// Differs from the paper: gates "softmax_topl", as in the authors' code: a softmax over all patches, of which the top l
// are kept. Equation 4 is a softmax over the l chosen patches only.
#pragma once

#include <string>

#include "sparsight/reproduce/train_job.h"

namespace sparsight::pmoe {

struct WrnResult {
  double accuracy = 0;  // of the final weights on the test split, in %
  int64_t test_images = 0;
  Json worst_cell;  // minimum accuracy over (class, domain) cells, in %; null if there are too many
  JobTraining training;
};

// sections: as for train_in_job(). Defaults are those of the authors' code: plain SGD, constant learning rate 0.1,
// batches of 128 (a smaller last batch is kept), 50 epochs, no augmentation.
WrnResult train_wrn(const Json& sections, const std::string& job_folder);

// {"train_accuracy", "seconds"}: a list for each epoch.
Json epoch_log(const JobTraining& training);

// Writes the model section into `sections` and, if `routed`, those of the MoE layer, as in the authors' code: for faces
// eight experts with 3x3 kernels on 16 patches, otherwise four with 1x1 kernels on 64 patches.
struct WrnModel {
  bool routed = false;
  bool faces = true;
  int64_t taken = 2;  // patches per expert
  int64_t widen = 10;
  bool gathered = false;   // expert path that computes only the routed patches
  double momentum = 0.99;  // of the batch norm statistics
};
void set_model(Json& sections, const WrnModel& model);

}  // namespace sparsight::pmoe
