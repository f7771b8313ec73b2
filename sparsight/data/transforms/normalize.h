// Normalisation: (x - mean) / std per channel, x in 0..1. It is the model's first module (models/normalize.h); the step
// `normalize` of a pipeline only names its statistics, and computes where other steps follow it.
#pragma once

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

// Mean and standard deviation of each channel of images in 0..1; one value stands for all channels. Empty: the images
// are taken as they are.
struct PixelStatistics {
  std::vector<double> mean = {}, std = {};
  bool empty() const { return mean.empty(); }
};

// For errors and logs: "mean [0.5] and std [0.25]", "none".
std::string to_text(const PixelStatistics& statistics);
// Whether both normalise alike; one value equals as many of the same.
bool operator==(const PixelStatistics& a, const PixelStatistics& b);

struct NormalizeOptions {
  std::string preset = "none";
  std::vector<double> mean;
  std::vector<double> std;
  void declare(OptionSet& set);
};

// Raises UsageError unless mean and std are equally long, of 1 or C values, std above 0.
PixelStatistics pixel_statistics(const NormalizeOptions& options);
// Raises UsageError unless there are 1 or `channels` values.
void check_channels(const PixelStatistics& statistics, int64_t channels);

TransformOp make_normalize(const NormalizeOptions& options);
// The way back: x * std + mean, fp32.
TransformOp make_denormalize(const PixelStatistics& statistics);

}  // namespace sparsight
