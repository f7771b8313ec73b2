// Normalisation: (x - mean) / std per channel, x in 0..1. It is the model's first module (models/normalize.h); the step
// `normalize` of a pipeline only sets its statistics, and is applied only if other steps follow it.
#pragma once

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

// Mean and standard deviation of each channel of images in 0..1; one value applies to all channels. Empty: no
// normalisation.
struct PixelStatistics {
  std::vector<double> mean = {}, std = {};
  bool empty() const { return mean.empty(); }
};

// For errors and logs: "mean [0.5] and std [0.25]", "none".
std::string to_text(const PixelStatistics& statistics);
// Whether both are the same normalisation; one value equals a list of that value.
bool operator==(const PixelStatistics& a, const PixelStatistics& b);

struct NormalizeOptions {
  std::string preset = "none";
  std::vector<double> mean;
  std::vector<double> std;
  void declare(OptionSet& set);
};

// Raises UsageError unless mean and std have the same length, 1 or C, and std is above 0.
PixelStatistics pixel_statistics(const NormalizeOptions& options);
// Raises UsageError unless there are 1 or `channels` values.
void check_channels(const PixelStatistics& statistics, int64_t channels);

TransformOp make_normalize(const NormalizeOptions& options);
// The inverse: x * std + mean, fp32.
TransformOp make_denormalize(const PixelStatistics& statistics);

}  // namespace sparsight
