// The division of the classes into super-classes that guides a model: the data's own, one found from the confusions of
// a dense model, or a random one.
#pragma once

#include <vector>

#include "sparsight/papers/mobile_vmoe/experiments/mobile_models.h"
#include "sparsight/reproduce/kept_results.h"

namespace sparsight::mobile_vmoe {

// The trained models and divisions that the figures of the paper share.
KeptResults kept_results(const FigureRun& run);
// Read once for each folder of data.
std::string data_fingerprint(const FigureRun& run);
// The sections of a training without what differs between machines, with the fingerprint of the data: its identity.
Json training_identity(const Json& sections, const FigureRun& run);

// [K] of each class, E super-classes, by spectral clustering of the confusions (soft counts) of one dense model for
// each run's data, on images that it was not trained on. Trains it unless a figure did. Raises Error on an interrupt.
std::vector<int64_t> found_groups(int64_t experts, const MobileOptions& options, const FigureRun& run);

struct ClassGroups {
  Json section;                   // [superclasses]
  std::vector<int64_t> map = {};  // of a file in the section, else empty
};
// For a guided model. seed: of the trial, which has a random division of its own.
ClassGroups groups_for(const MobileModel& model, const MobileOptions& options, const FigureRun& run, int64_t seed);

}  // namespace sparsight::mobile_vmoe
