// The models of the experiments: a vision transformer whose last MLPs are experts, routed once for each image or for
// each token, and the dense one that costs as much.
#pragma once

#include <string>

#include "sparsight/papers/mobile_vmoe/experiments/mobile_options.h"

namespace sparsight::mobile_vmoe {

// How the experts are chosen (the paper's figure 3e). Super-classes: one router for all layers, trained with the guided
// loss towards semantic super-classes or random ones. End to end: trained by the task and balance losses alone.
inline constexpr const char *kDense = "dense", *kImages = "end-to-end per image", *kRandom = "random super-classes",
                            *kSemantic = "super-classes", *kTokens = "end-to-end per token";

struct MobileModel {
  std::string routing = kSemantic;
  VitSize size;
  int64_t experts = 10, k = 1, layers = 2;
  double lambda = 0.3;

  bool is_routed() const { return routing != kDense; }
  bool is_guided() const { return (routing == kSemantic || routing == kRandom) && lambda > 0; }
};

// The model with the settings that a figure does not vary.
MobileModel mobile_model(const MobileOptions& options, const std::string& routing);

// All sections of the configuration that trains it, but [superclasses]. A dense model has its last L MLPs k times as
// wide, so that it costs as much as the k experts there.
Json training_sections(const MobileModel& model, const MobileOptions& options, const FigureRun& run, int64_t seed,
                       double held_out = 0);

struct MobileCost {
  double mflop = 0;  // of a forward pass of one image as the paper counts: convention flops_elementwise
  double parameters = 0, active = 0;  // all, and those of one image with k experts; thousands
  double expert = 0;                  // one expert in each of the L layers together, thousands; 0 of a dense model

  // What an image touches that uses this many experts of a layer on average; thousands.
  double touched(double experts_of_an_image, int64_t k) const { return active + (experts_of_an_image - k) * expert; }
};
MobileCost mobile_cost(const MobileModel& model, const MobileOptions& options, const FigureRun& run);

// Figure::expected_seconds of a training on one core.
double training_seconds(const MobileModel& model, const MobileOptions& options, const FigureRun& run);

}  // namespace sparsight::mobile_vmoe
