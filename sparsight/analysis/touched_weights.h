// Which weights the images of an evaluation touched: the parameters of the experts that computed their tokens, and
// those of the rest of the model. Daxberger et al. 2023, "Mobile V-MoEs", section 4.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/models/expert_weights.h"
#include "sparsight/models/model_output.h"

namespace sparsight {

class TouchedWeights {
 public:
  explicit TouchedWeights(ExpertWeights weights) : weights_(std::move(weights)) {}
  // The routings of `images` images, soft ones included: those touch every expert.
  void add(const ModelOutput& output, int64_t images);

  // {"parameters", "parameters_max", "bytes", "bytes_max"}: mean and maximum over images of the parameters outside of
  // experts plus those of the experts that an image touched in each layer; bytes are of fp32. Null for a model without
  // experts, and without images.
  Json json() const;

 private:
  ExpertWeights weights_;
  int64_t images_ = 0, most_ = 0;
  double sum_ = 0;
};

}  // namespace sparsight
